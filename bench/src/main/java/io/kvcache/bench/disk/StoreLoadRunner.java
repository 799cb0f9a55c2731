package io.kvcache.bench.disk;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.planner.store.TraceChains;
import io.kvcache.tiers.DiskOptions;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;

/// Brings blocks from a disk tier into host memory as a request does: by acquiring a chain and waiting for it.
///
/// The chains take turns, and together are three times what host memory holds; so none is there when its turn
/// comes. Two requesters take turns as well, as a server has more than one request: while one lets go and asks
/// anew, the disk has something to do.
///
/// **Ownership.** Closing it removes the tier.
final class StoreLoadRunner implements AutoCloseable {

    /// Room for all chains, in regions that take blocks of 4 MiB.
    static final long TIER_BYTES = 5L << 28;

    /// Memory for blocks.
    static final long HOST_BYTES = 128L << 20;

    private static final int CHAIN_BYTES = 32 << 20;
    private static final int CHAINS = 12;
    private static final Duration TIMEOUT = Duration.ofSeconds(30);

    private final Path folder;
    private final int blockBytes;
    private final TieredKvCache cache;
    private final List<BlockChain> chains;
    private int next;

    private StoreLoadRunner(Path folder, int blockBytes) {
        this.folder = folder;
        this.blockBytes = blockBytes;
        Namespace namespace = Namespace.of("onboard", TraceChains.shapeOf(blockBytes));
        chains = IntStream.range(0, CHAINS)
                .mapToObj(chain -> chain(namespace, chain))
                .toList();
        cache = TieredKvCache.builder()
                .hostBytes(HOST_BYTES)
                .checkSegments(false)
                .admission(AdmissionKind.ALWAYS)
                .disk(DiskOptions.of(folder, TIER_BYTES))
                .flushOnClose(Duration.ZERO)
                .build();
        cache.register(namespace);
    }

    /// Makes a store and fills its disk.
    ///
    /// @param place where the tier's directory is made
    static StoreLoadRunner open(Path place, int blockBytes) throws IOException {
        StoreLoadRunner mover = new StoreLoadRunner(Files.createTempDirectory(place, "kvcache-onboard-"), blockBytes);
        try {
            mover.fill();
            return mover;
        } catch (IOException | RuntimeException failure) {
            mover.close();
            throw failure;
        }
    }

    private BlockChain chain(Namespace namespace, int number) {
        List<byte[]> keys = IntStream.range(0, CHAIN_BYTES / blockBytes)
                .mapToObj(block -> (number + "/" + block).getBytes(StandardCharsets.US_ASCII))
                .toList();
        return BlockChain.ofEngineKeys(namespace, keys);
    }

    /// Flushes after each chain: what is put faster than it is written may leave host memory unwritten.
    private void fill() throws IOException {
        for (BlockChain chain : chains) {
            for (int i = 0; i < chain.length(); i++) {
                try (BlockWriter writer = cache.put(chain, i, 0, TIMEOUT)) {
                    BlockContent.of(chain.keyHi(i), chain.keyLo(i)).fill(writer.segment());
                    writer.seal();
                }
            }
            if (!cache.flush(TIMEOUT)) {
                throw new IOException("the tier in " + folder + " does not become durable");
            }
        }
    }

    /// Acquires so many bytes.
    ///
    /// @return GB/s
    /// @throws IOException when a block does not come
    double acquireBytes(long bytes) throws IOException {
        long start = System.nanoTime();
        BlockTable ahead = acquire();
        for (long moved = CHAIN_BYTES; moved < bytes; moved += CHAIN_BYTES) {
            BlockTable after = acquire();
            finish(ahead);
            ahead = after;
        }
        finish(ahead);
        return (double) bytes / (System.nanoTime() - start);
    }

    /// Returns how the bytes travel, in the words of the device.
    String path() {
        return cache.diskStats().getFirst().tier().path();
    }

    private BlockTable acquire() {
        return cache.acquire(chains.get(next++ % CHAINS), 0, TIMEOUT);
    }

    private void finish(BlockTable table) throws IOException {
        int blocks = CHAIN_BYTES / blockBytes;
        try (table) {
            if (table.await(blocks, TIMEOUT) != blocks) {
                throw new IOException(table.readyBlocks() + " of " + blocks + " blocks came from " + folder);
            }
        }
    }

    @Override
    public void close() throws IOException {
        cache.close();
        Files.deleteIfExists(folder.resolve("tier"));
        Files.deleteIfExists(folder.resolve("lock"));
        Files.deleteIfExists(folder);
    }
}
