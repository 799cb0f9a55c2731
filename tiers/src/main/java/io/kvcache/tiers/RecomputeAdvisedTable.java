package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingBlockTable;

/// A table followed by blocks on disk that are cheaper to compute than to load.
final class RecomputeAdvisedTable extends ForwardingBlockTable {

    private final int blocksToRecompute;

    private RecomputeAdvisedTable(BlockTable table, int blocksToRecompute) {
        super(table);
        this.blocksToRecompute = blocksToRecompute;
    }

    static BlockTable of(BlockTable table, int blocksToRecompute) {
        return blocksToRecompute == 0 ? table : new RecomputeAdvisedTable(table, blocksToRecompute);
    }

    @Override
    public int blocksToRecompute() {
        return blocksToRecompute;
    }
}
