package io.kvcache.bench.transport;

import io.kvcache.bench.transport.TransferEndpoint.ResourceUsage;
import io.kvcache.bench.transport.TransferEndpoint.TransferClient;
import io.kvcache.bench.transport.TransferMeter.TransferStats;
import io.kvcache.bench.transport.TransferSpec.TransferOperation;
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
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;

/// Asks how much is there of chains of 1,024 blocks, all of which are: by message, over what carries them, and
/// by looking into the server's memory.
public final class MatchComparison {

    /// Blocks of a chain.
    public static final int BLOCKS = 1024;

    /// More than a connection remembers, and no two begin alike: so all keys of each have to be sent.
    private static final int CHAINS = 24;

    private static final int BLOCK_TOKENS = 16;
    private static final int BLOCK_BYTES = 4096;
    private static final Namespace SPACE =
            Namespace.of("bench-match", BlockShape.kv(1, 1, 64, BLOCK_TOKENS, Dtype.BF16));
    private static final TransferSpec CARGO = new TransferSpec(TransferOperation.ACQUIRE, BLOCK_BYTES, 1);

    private final int rounds;
    private final Duration time;

    /// How long to measure.
    ///
    /// @param rounds times that each is asked
    /// @param time of each round
    public MatchComparison(int rounds, Duration time) {
        this.rounds = rounds;
        this.time = time;
    }

    /// All cells: by TCP, by Aeron's IPC and, where it can be, by shared memory; chains that were told before, and
    /// others.
    ///
    /// @param termBytes of the terms of Aeron's streams
    public List<MatchResult> run(int termBytes) throws IOException, InterruptedException {
        List<MatchResult> cells = new ArrayList<>();
        try (TransportServerProcess server = TransportServerProcess.start()) {
            cells.addAll(over("tcp", server, "127.0.0.1:" + server.port()));
        }
        if (SharedMemoryComparison.isSupported()) {
            Path folder = SharedMemoryComparison.createFolder();
            try (TransportServerProcess server = TransportServerProcess.startShared(folder)) {
                cells.addAll(over("shared", server, "shm:127.0.0.1:" + server.port()));
            } finally {
                SharedMemoryComparison.deleteFolder(folder);
            }
        }
        Path folder = SharedMemoryComparison.createFolder();
        String address = "aeron:ipc?dir=" + folder + "|term-length=" + termBytes;
        try (TransportServerProcess server = TransportServerProcess.startAeron(address)) {
            cells.addAll(over("aeron", server, address));
        } finally {
            SharedMemoryComparison.deleteFolder(folder);
        }
        return cells;
    }

    private List<MatchResult> over(String by, TransportServerProcess server, String address)
            throws IOException, InterruptedException {
        SharedMemoryMode use = by.equals("shared") ? SharedMemoryMode.REQUIRED : SharedMemoryMode.OFF;
        try (RemoteKvCache cache =
                RemoteKvCache.builder(address).sharedMemory(use).connect()) {
            List<BlockChain> chains = stored(cache);
            List<MatchResult> cells = new ArrayList<>();
            for (boolean told : new boolean[] {true, false}) {
                TransferEndpoint transferEndpoint =
                        new TransferEndpoint(new MatchClient(cache, told ? chains.subList(0, 1) : chains), server);
                transferEndpoint.measure(CARGO, time.multipliedBy(2));
                List<TransferEndpoint.RoundResult> all = new ArrayList<>();
                for (int round = 0; round < rounds; round++) {
                    all.add(transferEndpoint.measure(CARGO, time));
                }
                cells.add(new MatchResult(
                        by,
                        told,
                        TransferMeter.median(all.stream()
                                .map(TransferEndpoint.RoundResult::moves)
                                .toList()),
                        ResourceUsage.median(all.stream()
                                .map(TransferEndpoint.RoundResult::cost)
                                .toList())));
            }
            return cells;
        }
    }

    private static List<BlockChain> stored(KvCache cache) {
        cache.register(SPACE);
        MemorySegment block = Arena.ofAuto().allocate(BLOCK_BYTES, 4096);
        List<BlockChain> chains =
                IntStream.range(0, CHAINS).mapToObj(MatchComparison::chain).toList();
        for (BlockChain chain : chains) {
            int stored = cache.putAll(chain, 0, Collections.nCopies(BLOCKS, block), KvCache.NO_WAIT)
                    .stored();
            if (stored != BLOCKS) {
                throw new IllegalStateException(stored + " of " + BLOCKS + " blocks were taken");
            }
        }
        return chains;
    }

    private static BlockChain chain(int seed) {
        int[] tokens = new int[BLOCKS * BLOCK_TOKENS];
        tokens[0] = seed;
        return BlockChain.of(SPACE, tokens);
    }

    /// Asks about one chain after the other.
    private record MatchClient(KvCache cache, List<BlockChain> chains) implements TransferClient {

        @Override
        public boolean transfer(TransferSpec transferSpec, long number) {
            return cache.match(chains.get((int) (number % chains.size()))).blocks() == BLOCKS;
        }

        @Override
        public void close() {
            // The cache is its caller's.
        }
    }

    /// How long it takes to ask how much of a chain is there.
    ///
    /// @param by what carries the question: `tcp`, `aeron`, `shared`
    /// @param told whether the other side knew the chain from an earlier question, so that no key had to be sent
    public record MatchResult(String by, boolean told, TransferStats moves, ResourceUsage cost) {}
}
