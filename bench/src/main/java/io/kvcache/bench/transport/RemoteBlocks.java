package io.kvcache.bench.transport;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.SharedMemoryMode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

/// A client of the remote cache with chains of one block, half a GiB of blocks together. A get reuses a chain
/// object that was made before, as a real caller has it. Each put uses a new chain.
final class RemoteBlocks implements AutoCloseable {

    static final long WORKING_SET_BYTES = 512L << 20;

    /// An odd step visits all of a power of two.
    static final int STRIDE = 7919;

    private static final int BLOCK_TOKENS = 16;
    private static final int MAX_BLOCK_BYTES = 4 << 20;

    private static final Map<Integer, Namespace> SPACES = new ConcurrentHashMap<>();

    private final RemoteKvCache cache;
    private final AtomicInteger puts = new AtomicInteger();
    private final ThreadLocal<MemorySegment> source =
            ThreadLocal.withInitial(() -> Arena.ofAuto().allocate(MAX_BLOCK_BYTES, 4096));

    /// The operation on one block or several.
    enum Operation {
        /// Get it here.
        ACQUIRE(1),
        /// Reserve room, then fill it: two round trips.
        PUT(1),
        /// Reserve and fill in one round trip.
        STORE(1),
        /// Store a run of blocks, several on their way at a time.
        STORE_8(8);

        private final int blocks;

        Operation(int blocks) {
            this.blocks = blocks;
        }

        /// As in names of figures.
        String label() {
            return name().toLowerCase(Locale.ROOT).replace('_', '-');
        }

        /// Blocks of one move.
        int blockCount() {
            return blocks;
        }

        /// Returns whether bytes go to the server.
        boolean isPut() {
            return this != ACQUIRE;
        }
    }

    RemoteBlocks(String address, int connections) {
        this(address, connections, SharedMemoryMode.OFF);
    }

    /// @param memory whether the server's memory is mapped, and so what is put is written where it can read it
    RemoteBlocks(String address, int connections, SharedMemoryMode memory) {
        cache = RemoteKvCache.builder(address)
                .connections(connections)
                .sharedMemory(memory)
                .connect();
    }

    /// The namespace of blocks of a size: made once, as by a real caller.
    static Namespace space(int bytes) {
        return SPACES.computeIfAbsent(bytes, _ -> {
            int layers = bytes / (64 << 10);
            return Namespace.of("bench-" + layers, BlockShape.kv(layers, 1, 1024, BLOCK_TOKENS, Dtype.BF16));
        });
    }

    private static BlockChain chain(int bytes, int seed, int blocks) {
        int[] tokens = new int[blocks * BLOCK_TOKENS];
        tokens[0] = seed;
        return BlockChain.of(space(bytes), tokens);
    }

    /// The chains of one block that [#put] stores; their number is a power of two.
    static List<BlockChain> chains(int bytes) {
        return IntStream.range(0, (int) (WORKING_SET_BYTES / bytes))
                .mapToObj(seed -> chain(bytes, seed, 1))
                .toList();
    }

    /// Puts what is to be got.
    void put(int bytes) {
        cache.register(space(bytes));
        for (BlockChain chain : chains(bytes)) {
            if (!put(chain)) {
                throw new IllegalStateException("a block was not taken: " + cache.remoteStats());
            }
        }
    }

    /// Drops all blocks of this size, so that the next one has the store to itself.
    void drop(int bytes) {
        cache.drop(space(bytes));
    }

    /// For a client that reads one-sided.
    void requireOneSidedReads() {
        if (cache.remoteStats().fetched() == 0) {
            throw new IllegalStateException("no block was read one-sided: " + cache.remoteStats());
        }
    }

    /// For a client that puts through memory that it shares with the server.
    void requireSharedMemoryPuts() {
        if (cache.remoteStats().staged() == 0) {
            throw new IllegalStateException("no block was put through shared memory: " + cache.remoteStats());
        }
    }

    /// Returns a client that moves blocks of one size.
    TransferClient client(Operation operation, int bytes) {
        return switch (operation) {
            case ACQUIRE -> {
                List<BlockChain> chains = chains(bytes);
                yield number -> acquire(chains.get((int) (number * STRIDE & (chains.size() - 1))));
            }
            case PUT -> _ -> put(chain(bytes, newChain(bytes), 1));
            case STORE, STORE_8 -> _ -> store(bytes, operation.blocks);
        };
    }

    private boolean acquire(BlockChain chain) {
        try (BlockTable table = cache.acquire(chain)) {
            return table.readyBlocks() == 1;
        }
    }

    private boolean store(int bytes, int blocks) {
        MemorySegment block = source.get().asSlice(0, bytes);
        BlockChain chain = chain(bytes, newChain(bytes), blocks);
        return cache.putAll(chain, 0, Collections.nCopies(blocks, block), KvCache.NO_WAIT)
                        .accepted()
                == blocks;
    }

    private int newChain(int bytes) {
        return (int) (WORKING_SET_BYTES / bytes) + puts.incrementAndGet();
    }

    private boolean put(BlockChain chain) {
        try (BlockWriter writer = cache.put(chain, 0, 0, KvCache.NO_WAIT)) {
            return writer.outcome() == PutOutcome.PRESENT
                    || (writer.outcome() == PutOutcome.RESERVED && writer.seal() == SealOutcome.SEALED);
        }
    }

    @Override
    public void close() {
        cache.close();
    }
}
