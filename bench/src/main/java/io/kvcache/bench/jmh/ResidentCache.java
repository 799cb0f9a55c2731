package io.kvcache.bench.jmh;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/// An embedded store in which a million blocks are resident: 122 chains of 8,192.
@State(Scope.Benchmark)
public class ResidentCache {

    static final int CHAINS = 122;
    static final int RECORDS = CHAINS * BenchChains.BLOCKS;

    /// So many that their buckets are in no cache.
    private static final int ABSENT = 1 << 16;

    /// Size of a slot: the smallest allowed.
    static final int SLOT_BYTES = 4096;

    final BlockChain[] residentChains = BenchChains.of(1, CHAINS);
    final BlockChain[] absentChains = BenchChains.oneBlockChains(2, ABSENT);
    final TieredKvCache cache = TieredKvCache.builder()
            .hostBytes((long) RECORDS * SLOT_BYTES + (64 << 20))
            .records(RECORDS)
            .prefaultInBackground(false)
            .checkSegments(false)
            .build();

    public ResidentCache() {
        cache.register(BenchChains.NAMESPACE);
        BenchChains.forEachBlockInterleaved(residentChains, this::put);
    }

    private void put(BlockChain chain, int index) {
        try (BlockWriter writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
            if (writer.seal() != SealOutcome.SEALED) {
                throw new IllegalStateException("block " + index + " of " + chain + " was not sealed");
            }
        }
    }

    @TearDown
    public void close() {
        cache.close();
    }
}
