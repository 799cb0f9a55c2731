package io.kvcache.bench.transport;

import com.sun.management.ThreadMXBean;
import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.SharedMemoryMode;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.IntFunction;

/// Moves chains of one block and of many, and tells what a request leaves on the heaps of both processes, and what each
/// further block of it does.
public final class HeapComparison {

    private static final int BLOCK_TOKENS = 16;
    private static final int BLOCK_BYTES = 64 << 10;
    private static final int CHAIN_BLOCKS = 33;
    private static final int WARMUP_REQUESTS = 3000;
    private static final int REQUESTS = 1000;
    private static final int FIRST_STORED = 1 << 24;
    private static final Namespace SPACE =
            Namespace.of("bench-heap", BlockShape.kv(1, 1, 1024, BLOCK_TOKENS, Dtype.BF16));
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private final MemorySegment block = Arena.ofAuto().allocate(BLOCK_BYTES, 4096);
    private final List<MemorySegment> blocks = Collections.nCopies(CHAIN_BLOCKS, block);
    private int fresh;

    /// A request, answered with whether it moved all.
    @FunctionalInterface
    private interface ChainRequest {

        /// Moves a chain.
        boolean send(BlockChain chain);
    }

    /// All cells: got and put over TCP and, where it can be, copied and looked at in shared memory.
    public List<HeapResult> run() throws IOException, InterruptedException {
        List<HeapResult> cells = new ArrayList<>();
        try (TransportServerProcess server = TransportServerProcess.start();
                RemoteKvCache cache = open(server, SharedMemoryMode.OFF)) {
            cells.add(cell("tcp acquire", server, this::stored, chain -> acquire(cache, chain)));
            cells.add(cell("tcp put", server, this::next, chain -> put(cache, chain)));
        }
        if (SharedMemoryComparison.isSupported()) {
            Path folder = SharedMemoryComparison.createFolder();
            try (TransportServerProcess server = TransportServerProcess.startShared(folder);
                    RemoteKvCache cache = open(server, SharedMemoryMode.REQUIRED)) {
                cells.add(cell("shared copy", server, this::stored, chain -> copy(cache, chain)));
                cells.add(cell("shared view", server, this::stored, chain -> acquire(cache, chain)));
                cells.add(cell("staged put", server, this::next, chain -> put(cache, chain)));
            } finally {
                SharedMemoryComparison.deleteFolder(folder);
            }
        }
        return cells;
    }

    private RemoteKvCache open(TransportServerProcess server, SharedMemoryMode memory) {
        RemoteKvCache cache = RemoteKvCache.builder("127.0.0.1:" + server.port())
                .connections(1)
                .sharedMemory(memory)
                .connect();
        cache.register(SPACE);
        for (int length : new int[] {1, CHAIN_BLOCKS}) {
            if (!put(cache, stored(length))) {
                throw new IllegalStateException("a chain of " + length + " blocks was not taken");
            }
        }
        return cache;
    }

    private static BlockChain chain(int seed, int length) {
        int[] tokens = new int[length * BLOCK_TOKENS];
        tokens[0] = seed;
        return BlockChain.of(SPACE, tokens);
    }

    private BlockChain stored(int length) {
        return chain(FIRST_STORED + length, length);
    }

    private BlockChain next(int length) {
        return chain(++fresh, length);
    }

    private static boolean acquire(KvCache cache, BlockChain chain) {
        try (BlockTable table = cache.acquire(chain)) {
            return table.readyBlocks() == chain.length();
        }
    }

    private boolean copy(KvCache cache, BlockChain chain) {
        return cache.getAll(chain, 0, blocks.subList(0, chain.length())) == chain.length();
    }

    private boolean put(KvCache cache, BlockChain chain) {
        return cache.putAll(chain, 0, blocks.subList(0, chain.length()), KvCache.NO_WAIT)
                                .stored()
                        == chain.length()
                || cache.match(chain).blocks() == chain.length();
    }

    private HeapResult cell(
            String what, TransportServerProcess server, IntFunction<BlockChain> chains, ChainRequest chainRequest)
            throws IOException {
        HeapBytes one = heap(server, chains, chainRequest, 1);
        HeapBytes many = heap(server, chains, chainRequest, CHAIN_BLOCKS);
        return new HeapResult(
                what,
                one.here,
                (many.here - one.here) / (CHAIN_BLOCKS - 1),
                one.server,
                (many.server - one.server) / (CHAIN_BLOCKS - 1));
    }

    /// A request's, in bytes.
    private record HeapBytes(double here, double server) {}

    private static HeapBytes heap(
            TransportServerProcess server, IntFunction<BlockChain> chains, ChainRequest chainRequest, int length)
            throws IOException {
        repeat(chains, chainRequest, length, WARMUP_REQUESTS);
        List<BlockChain> made = new ArrayList<>();
        for (int request = 0; request < REQUESTS; request++) {
            made.add(chains.apply(length));
        }
        long there = server.allocatedBytes();
        long here = THREADS.getTotalThreadAllocatedBytes();
        for (BlockChain chain : made) {
            require(chainRequest.send(chain));
        }
        double hereBytes = THREADS.getTotalThreadAllocatedBytes() - here;
        return new HeapBytes(hereBytes / REQUESTS, (double) (server.allocatedBytes() - there) / REQUESTS);
    }

    private static void repeat(IntFunction<BlockChain> chains, ChainRequest chainRequest, int length, int times) {
        for (int request = 0; request < times; request++) {
            require(chainRequest.send(chains.apply(length)));
        }
    }

    private static void require(boolean moved) {
        if (!moved) {
            throw new IllegalStateException("a chain was not moved");
        }
    }

    /// The heap bytes that moving chains of blocks of 64 KiB allocates.
    ///
    /// @param what is done, over what
    /// @param request in this process, with one block
    /// @param block in this process, for each further block of a request
    /// @param serverRequest in the server's process
    /// @param serverBlock likewise
    public record HeapResult(String what, double request, double block, double serverRequest, double serverBlock) {}
}
