package io.kvcache.bench.jmh;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.tree.RecordLayout;

/// How many bytes does the metadata of one block take, all in, in a store with a million of them?
///
/// Budget: 120. `./kvcache bench core --filter bytes`
public final class MetadataFootprint {

    /// The bytes of the layout itself, without the index.
    public static final int LINES_BYTES = RecordLayout.HOT_BYTES + RecordLayout.COLD_BYTES;

    private MetadataFootprint() {}

    /// With chains of 8,192 blocks.
    public static double chainBytes() {
        try (ResidentStore resident = new ResidentStore()) {
            BenchChains.forEachBlockInterleaved(BenchChains.of(1, ResidentCache.CHAINS), resident::put);
            return resident.bytesPerRecord();
        }
    }

    /// With a million chains of one block, when every record is a leaf and so in the heap of the policy.
    public static double leafBytes() {
        try (ResidentStore resident = new ResidentStore()) {
            for (BlockChain chain : BenchChains.oneBlockChains(1, ResidentCache.RECORDS)) {
                resident.put(chain, 0);
            }
            return resident.bytesPerRecord();
        }
    }
}
