package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;

/// Blocks whose bytes follow from their keys, and waiting for what takes its time.
final class TestBlocks {

    /// Blocks of 1 MiB.
    static final Namespace SPACE = Namespace.of("sample", BlockShape.kv(16, 1, 1024, 16, Dtype.BF16));

    static final int BLOCK_BYTES = 1 << 20;

    /// How long anything may take before a test gives up.
    static final Duration PATIENCE = Duration.ofSeconds(60);

    /// Between two looks, so that what is waited for has the processor.
    private static final long LOOK_NANOS = TimeUnit.MICROSECONDS.toNanos(200);

    private TestBlocks() {}

    static BlockChain chain(int seed, int blocks) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, 16 * blocks).map(i -> seed * 100_000 + i).toArray());
    }

    /// Puts one block; answers whether it is here afterwards.
    static boolean put(KvCache cache, BlockChain chain, int index) {
        try (BlockWriter writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                BlockContent.of(chain.key(index)).fill(writer.segment());
                return writer.seal() == SealOutcome.SEALED;
            }
            return writer.outcome() == PutOutcome.PRESENT;
        }
    }

    /// Puts an object, which must find room.
    static void putObject(KvCache cache, Namespace space, byte[] key, MemorySegment bytes) {
        try (ObjectWriter writer = cache.putObject(space, key, bytes.byteSize(), KvCache.NO_WAIT)) {
            long at = 0;
            for (MemorySegment piece : writer.segments()) {
                MemorySegment.copy(bytes, at, piece, 0, piece.byteSize());
                at += piece.byteSize();
            }
            assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
        }
    }

    static BlockChain stored(KvCache cache, int seed, int blocks) {
        BlockChain chain = chain(seed, blocks);
        for (int index = 0; index < blocks; index++) {
            assertThat(put(cache, chain, index)).as("block %d", index).isTrue();
        }
        return chain;
    }

    /// Checks every byte of a table; answers how many blocks it has.
    static int verify(BlockTable table, BlockChain chain) {
        int end = table.readyEnd();
        for (int index = table.firstBlock(); index < end; index++) {
            BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
        }
        return table.readyBlocks();
    }

    static int verified(KvCache cache, BlockChain chain) {
        try (BlockTable table = cache.acquire(chain)) {
            return verify(table, chain);
        }
    }

    /// Returns once it is so.
    static void await(String what, BooleanSupplier so) {
        long start = System.nanoTime();
        while (!so.getAsBoolean()) {
            assertThat(System.nanoTime() - start).as(what).isLessThan(PATIENCE.toNanos());
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }
}
