package io.kvcache.bench.cluster;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutSummary;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.store.TraceChains;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.peer.ClusteredKvCache;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Replays a trace through clients of a cluster, each with connections of its own, and checks every byte that they
/// read.
///
/// A client takes the next request of the trace, reads its blocks, and puts those that are missing, as an engine would.
///
/// **Threads.** One per client; any may look on.
public final class ClusterReplay {

    private static final Duration TIMEOUT = Duration.ofMillis(200);
    private static final Duration REQUEST_TIMEOUT = Duration.ofSeconds(1);
    private static final long CLIENT_MEMORY = 64L << 20;

    private final PrefixForest forest;
    private final TraceChains chains;
    private final Settings settings;
    private final AtomicInteger next = new AtomicInteger();
    private final AtomicLong asked = new AtomicLong();
    private final AtomicLong found = new AtomicLong();
    private final int[] possibleHits;
    private final AtomicLong possible = new AtomicLong();
    private final AtomicLong unstored = new AtomicLong();
    private final AtomicLong wrong = new AtomicLong();
    private final AtomicLong errors = new AtomicLong();
    private final AtomicReference<@Nullable String> firstError = new AtomicReference<>();
    private final Served served;

    /// How it replays.
    ///
    /// @param clients threads, each with a client of the cluster
    /// @param rate requests a second of all together; 0 for as many as there can be
    /// @param blockBytes bytes of a block
    /// @param transport how clients reach the servers
    public record Settings(int clients, double rate, int blockBytes, ClientTransport transport) {

        Settings withRate(double other) {
            return new Settings(clients, other, blockBytes, transport);
        }
    }

    /// What became of the requests.
    ///
    /// @param found leading blocks of each that were there
    /// @param startNanos when each began, as [System#nanoTime] counts
    /// @param waitNanos how long each waited for its blocks and for its puts
    @SuppressWarnings("ArrayRecordComponent") // thousands of requests; nothing compares it
    record Served(int[] found, long[] startNanos, long[] waitNanos) {

        /// Blocks found by the requests of a range.
        long foundIn(int from, int to) {
            return Arrays.stream(found, from, Math.min(to, found.length))
                    .asLongStream()
                    .sum();
        }

        /// The longest wait of the requests of a range, in milliseconds.
        double maxWaitMillis(int from, int to) {
            return Arrays.stream(waitNanos, from, Math.min(to, waitNanos.length))
                            .max()
                            .orElse(0)
                    / 1e6;
        }

        /// The wait that a share of the requests of a range does not exceed, in milliseconds.
        double waitMillis(int from, int to, double share) {
            long[] sorted = Arrays.stream(waitNanos, from, Math.min(to, waitNanos.length))
                    .sorted()
                    .toArray();
            return sorted.length == 0 ? 0 : sorted[(int) ((sorted.length - 1) * share)] / 1e6;
        }
    }

    /// Sums so far.
    ///
    /// @param requests that were begun
    /// @param asked blocks that could have been there
    /// @param found blocks that were there
    /// @param possible blocks that an unlimited cache would have had, one request after another
    /// @param unstored blocks that were put and that no server took
    /// @param wrong of the blocks found, with other bytes than were put
    /// @param errors requests that ended with an exception
    public record Progress(
            int requests, long asked, long found, long possible, long unstored, long wrong, long errors) {

        /// What came after earlier sums.
        public Progress since(Progress before) {
            return new Progress(
                    requests - before.requests,
                    asked - before.asked,
                    found - before.found,
                    possible - before.possible,
                    unstored - before.unstored,
                    wrong - before.wrong,
                    errors - before.errors);
        }

        /// Found over asked; 0 where nothing was asked.
        public double hitRatio() {
            return asked == 0 ? 0 : (double) found / asked;
        }
    }

    public ClusterReplay(PrefixForest forest, Settings settings) {
        this.forest = forest;
        this.settings = settings;
        chains = new TraceChains(forest, settings.blockBytes);
        possibleHits = possibleHits(forest);
        int requests = forest.requestCount();
        served = new Served(new int[requests], new long[requests], new long[requests]);
    }

    /// Blocks of each request that requests before it have put.
    private static int[] possibleHits(PrefixForest forest) {
        BitSet seen = new BitSet();
        int[] hits = new int[forest.requestCount()];
        for (int request = 0; request < hits.length; request++) {
            while (hits[request] < forest.lookupBlocks(request) && seen.get(forest.node(request, hits[request]))) {
                hits[request]++;
            }
            for (int block = 0; block < forest.storedBlocks(request); block++) {
                seen.set(forest.node(request, block));
            }
        }
        return hits;
    }

    /// Runs the whole trace.
    ///
    /// @param seeds addresses of servers
    /// @throws IOException when a client ends before the trace does
    public void run(List<String> seeds) throws IOException, InterruptedException {
        List<ClusteredKvCache> caches = new ArrayList<>();
        try (ExecutorService threads = Executors.newFixedThreadPool(settings.clients)) {
            for (int client = 0; client < settings.clients; client++) {
                ClusteredKvCache cache = ClusteredKvCache.connect(seeds, this::connect);
                caches.add(cache);
                cache.register(chains.namespace());
            }
            long start = System.nanoTime();
            List<Future<?>> running = new ArrayList<>();
            for (ClusteredKvCache cache : caches) {
                running.add(threads.submit(() -> serveAll(cache, start)));
            }
            for (Future<?> each : running) {
                each.get();
            }
        } catch (ExecutionException failed) {
            throw new IOException("a client ended: " + failed.getCause(), failed);
        } finally {
            caches.forEach(ClusteredKvCache::close);
        }
    }

    private RemoteKvCache connect(String address) {
        return settings.transport
                .connection(address)
                .requestTimeout(REQUEST_TIMEOUT)
                .memoryBytes(CLIENT_MEMORY)
                .connect();
    }

    private void serveAll(KvCache cache, long start) {
        try (Arena arena = Arena.ofShared()) {
            Buffers buffers = new Buffers(arena, settings.blockBytes);
            int request = next.getAndIncrement();
            while (request < forest.requestCount() && !Thread.currentThread().isInterrupted()) {
                BlockChain chain = chains.chainOf(request);
                awaitTurn(request, start);
                serve(cache, chain, request, buffers);
                request = next.getAndIncrement();
            }
        }
    }

    /// Blocks to be put, allocated as they are needed.
    private record Buffers(Arena arena, int blockBytes, List<MemorySegment> blocks) {

        Buffers(Arena arena, int blockBytes) {
            this(arena, blockBytes, new ArrayList<>());
        }

        List<MemorySegment> first(int count) {
            while (blocks.size() < count) {
                blocks.add(arena.allocate(blockBytes, Long.BYTES));
            }
            return List.copyOf(blocks.subList(0, count));
        }
    }

    private void awaitTurn(int request, long start) {
        if (settings.rate > 0) {
            long until = start + (long) (request * 1e9 / settings.rate);
            for (long left = until - System.nanoTime(); left > 0; left = until - System.nanoTime()) {
                LockSupport.parkNanos(left);
                if (Thread.currentThread().isInterrupted()) {
                    return;
                }
            }
        }
    }

    private void serve(KvCache cache, BlockChain chain, int request, Buffers buffers) {
        long start = System.nanoTime();
        served.startNanos[request] = start;
        if (chain.length() > 0) {
            try {
                int ready = read(cache, chain, request, start);
                put(cache, chain, request, ready, buffers);
            } catch (RuntimeException failed) {
                errors.incrementAndGet();
                firstError.compareAndSet(null, "request " + request + ": " + describe(failed));
            }
        }
        asked.addAndGet(forest.lookupBlocks(request));
        found.addAndGet(served.found[request]);
        possible.addAndGet(possibleHits[request]);
    }

    private static String describe(RuntimeException failed) {
        StackTraceElement[] stack = failed.getStackTrace();
        return failed + (stack.length == 0 ? "" : " at " + stack[0]);
    }

    private int read(KvCache cache, BlockChain chain, int request, long start) {
        try (BlockTable table = cache.acquire(chain, 0, TIMEOUT)) {
            long left = TIMEOUT.toNanos() - (System.nanoTime() - start);
            int ready = table.await(table.endBlock(), Duration.ofNanos(Math.max(0, left)));
            served.waitNanos[request] = System.nanoTime() - start;
            int differ = TraceChains.countWrong(table, chain, ready);
            if (!table.isValid()) {
                return 0; // the segments were not this table's any more, and the client says so
            }
            wrong.addAndGet(differ);
            served.found[request] = Math.min(ready, forest.lookupBlocks(request));
            return ready;
        }
    }

    private void put(KvCache cache, BlockChain chain, int request, int from, Buffers buffers) {
        List<MemorySegment> blocks = buffers.first(chain.length() - from);
        if (!blocks.isEmpty()) {
            for (int i = 0; i < blocks.size(); i++) {
                TraceChains.fill(chain, from + i, blocks.get(i));
            }
            long start = System.nanoTime();
            PutSummary summary = cache.putAll(chain, from, blocks, TIMEOUT);
            unstored.addAndGet(blocks.size() - summary.accepted());
            served.waitNanos[request] += System.nanoTime() - start;
        }
    }

    /// Returns the sums so far.
    public Progress progress() {
        return new Progress(
                begun(), asked.get(), found.get(), possible.get(), unstored.get(), wrong.get(), errors.get());
    }

    /// Returns how many requests were begun.
    int begun() {
        return Math.min(next.get(), forest.requestCount());
    }

    /// Waits until a request has begun, or the replay has ended.
    void awaitRequest(int request, Future<?> replay) throws InterruptedException {
        while (begun() < request && !replay.isDone()) {
            Thread.sleep(Duration.ofMillis(1));
        }
    }

    /// Returns the first exception of a request, or null.
    public @Nullable String firstError() {
        return firstError.get();
    }

    /// Returns what became of the requests, to be read after [#run].
    Served served() {
        return served;
    }
}
