package io.kvcache.bench.transport;

import io.kvcache.bench.transport.TransferEndpoint.TransferClient;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
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
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

/// Uses the remote cache with chains of one block, half a GiB of blocks together. A get reuses a chain object that
/// was made before, as a real caller has it. Each put uses a new chain.
final class RemoteTransferClient implements TransferClient {

    private static final long WORKING_SET_BYTES = 512L << 20;
    private static final int BLOCK_TOKENS = 16;
    private static final int MAX_BLOCK_BYTES = 4 << 20;

    private static final Map<Integer, Namespace> SPACES = new ConcurrentHashMap<>();

    private final RemoteKvCache cache;
    private final AtomicInteger puts;
    private volatile List<BlockChain> storedChains = List.of();
    private final ThreadLocal<MemorySegment> source =
            ThreadLocal.withInitial(() -> Arena.ofAuto().allocate(MAX_BLOCK_BYTES, 4096));

    RemoteTransferClient(String address, int connections) {
        this(address, connections, 0);
    }

    /// @param first of its puts, so that two clients of one server do not put the same
    RemoteTransferClient(String address, int connections, int first) {
        this(address, connections, first, SharedMemoryMode.OFF);
    }

    /// @param memory whether the server's memory is mapped, and so what is put is written where it can read it
    RemoteTransferClient(String address, int connections, int first, SharedMemoryMode memory) {
        puts = new AtomicInteger(first);
        cache = RemoteKvCache.builder(address)
                .connections(connections)
                .sharedMemory(memory)
                .connect();
    }

    /// Whose blocks are of this size: made once, as by a real caller.
    static Namespace space(int bytes) {
        return SPACES.computeIfAbsent(bytes, RemoteTransferClient::newSpace);
    }

    private static Namespace newSpace(int bytes) {
        int layers = bytes / (64 << 10);
        return Namespace.of("bench-" + layers, BlockShape.kv(layers, 1, 1024, BLOCK_TOKENS, Dtype.BF16));
    }

    /// One of the chains of one block.
    static BlockChain chain(int bytes, int seed) {
        return chain(bytes, seed, 1);
    }

    private static BlockChain chain(int bytes, int seed, int blocks) {
        int[] tokens = new int[blocks * BLOCK_TOKENS];
        tokens[0] = seed;
        return BlockChain.of(space(bytes), tokens);
    }

    /// Blocks of this size, a power of two.
    static int blocks(int bytes) {
        return (int) (WORKING_SET_BYTES / bytes);
    }

    /// Puts what is to be got.
    void putBlocks(int bytes) {
        useStored(bytes);
        for (int seed = 0; seed < blocks(bytes); seed++) {
            if (!put(storedChains.get(seed))) {
                throw new IllegalStateException("block " + seed + " was not taken: " + cache.remoteStats());
            }
        }
    }

    /// Uses what another client has put.
    void useStored(int bytes) {
        cache.register(space(bytes));
        storedChains = IntStream.range(0, blocks(bytes))
                .mapToObj(seed -> chain(bytes, seed))
                .toList();
    }

    /// Forgets all blocks of this size, so that the next one has the store to itself.
    void dropBlocks(int bytes) {
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

    @Override
    public boolean transfer(TransferSpec transferSpec, long number) {
        int bytes = transferSpec.bytes();
        switch (transferSpec.operation()) {
            case PUT -> {
                return put(chain(bytes, newChain(bytes)));
            }
            case STORE, STORE_RUN -> {
                return store(bytes, transferSpec.operation().blockCount());
            }
            case ACQUIRE -> {
                // Below.
            }
        }
        // An odd step visits all of them, as their number is a power of two.
        int seed = (int) (number * 7919 & (blocks(bytes) - 1));
        try (BlockTable table = cache.acquire(storedChains.get(seed))) {
            return table.readyBlocks() == 1;
        }
    }

    private boolean store(int bytes, int blocks) {
        MemorySegment block = source.get().asSlice(0, bytes);
        BlockChain chain = chain(bytes, newChain(bytes), blocks);
        PutSummary put = cache.putAll(chain, 0, Collections.nCopies(blocks, block), KvCache.NO_WAIT);
        return put.accepted() == blocks;
    }

    private int newChain(int bytes) {
        return blocks(bytes) + puts.incrementAndGet();
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
