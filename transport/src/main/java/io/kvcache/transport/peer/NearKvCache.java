package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Timeouts;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.BlockGroups;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// An embedded store over a slower cache that many share: a cluster, or one server.
///
/// ```java
/// KvCache cache = NearKvCache.over(TieredKvCache.builder().hostBytes(64L << 30).build(),
///         ClusteredKvCache.connect("kv-0:7420", "kv-1:7420"));
/// ```
///
/// **Get.** `acquire` with a timeout asks below for missing blocks, one group of the chain after another. The
/// store keeps the blocks that arrive, and the table grows by them in chain order. `match`, and `acquire`
/// without a timeout, ask the store alone.
///
/// **Put.** A background thread stores sealed blocks below too. They stay there when this store evicts them. Up to
/// 1,024 groups wait for it; what is more is not stored there until it is put again.
///
/// **Failures.** What cannot be reached below is a miss, and no caller waits for it beyond its own timeout.
/// Only `drop` needs all servers; when it throws, the blocks are dropped here.
///
/// Objects, hints, events and statistics are the store's own.
///
/// **Ownership.** The store and the cache below are this cache's, which closes both.
///
/// **Threads.** Safe for any number.
public final class NearKvCache extends ForwardingKvCache {

    /// Groups that wait to be stored below.
    private static final int MAX_QUEUED = 1024;

    private final KvCache below;
    private final PeerClock clock;
    private final BlockFetcher fetcher;
    private final @Nullable Replicator replicator;

    /// Namespaces with blocks that the cache below knows.
    private final Set<Namespace> registered = ConcurrentHashMap.newKeySet();

    /// Replacements for tests.
    ///
    /// @param fetching fetches missing blocks
    /// @param replicating runs one thing, for as long as the cache is open; null to store nothing below
    /// @param missTtl for how long blocks that were not found are not asked for again
    record Dependencies(ExecutorService fetching, @Nullable Executor replicating, PeerClock clock, Duration missTtl) {}

    private NearKvCache(LocalKvCache local, KvCache below, Dependencies dependencies) {
        super(local);
        this.below = below;
        clock = dependencies.clock;
        fetcher = new BlockFetcher(local, new Below(), dependencies.fetching, clock, dependencies.missTtl);
        replicator = dependencies.replicating == null ? null : new Replicator(dependencies.replicating);
    }

    /// Opens a cache.
    ///
    /// @param local the store, this cache's from now on. Blocks of namespaces that were registered with it
    ///     before are its own alone
    /// @param below a [ClusteredKvCache], or an [io.kvcache.transport.client.RemoteKvCache] where there is
    ///     one server; this cache's from now on
    public static NearKvCache over(LocalKvCache local, KvCache below) {
        return over(
                local,
                below,
                new Dependencies(
                        Executors.newFixedThreadPool(
                                BlockFetcher.THREADS,
                                Thread.ofPlatform()
                                        .daemon()
                                        .name("kvcache-near-fetch-", 0)
                                        .factory()),
                        task -> Thread.ofPlatform()
                                .daemon()
                                .name("kvcache-near-put")
                                .start(task),
                        PeerClock.MACHINE,
                        BlockFetcher.MISS_TTL));
    }

    static NearKvCache over(LocalKvCache local, KvCache below, Dependencies dependencies) {
        NearKvCache cache = new NearKvCache(local, below, dependencies);
        Replicator replicator = cache.replicator;
        if (replicator != null) {
            replicator.start();
        }
        return cache;
    }

    /// What the cache below has.
    private final class Below implements BlockFetcher.Source {

        @Override
        public boolean mayHave(BlockChain chain, int block) {
            return registered.contains(chain.namespace());
        }

        @Override
        public int end(BlockChain chain, int block) {
            return BlockGroup.end(chain, block);
        }

        @Override
        public int fetch(BlockFetcher.Fetch fetch, int at, long timeoutNanos) {
            if (!fetch.isWanted() || timeoutNanos <= 0) {
                return BlockFetcher.NOT_ASKED;
            }
            long until = clock.nanos() + timeoutNanos;
            int end = at;
            boolean found;
            try (BlockTable table = below.acquire(fetch.chain(), at, Duration.ofNanos(timeoutNanos))) {
                found = table.blocks() > 0;
                end = found ? fetch.storeAll(table, at, until) : at;
            }
            boolean isUnknown = found || until - clock.nanos() <= 0;
            return end == at && isUnknown ? BlockFetcher.NOT_ASKED : end;
        }
    }

    /// @throws IllegalArgumentException also when the cache below refuses the namespace
    @Override
    public void register(Namespace namespace) {
        if (namespace.parts().isEmpty()) {
            delegate().register(namespace);
            return;
        }
        BlockGroup.requireBlocksAlone(namespace);
        below.register(namespace);
        delegate().register(namespace);
        registered.add(namespace);
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
        return fetcher.acquire(chain, timeout, delegate().acquire(chain, from, timeout));
    }

    /// Layer by layer where the cache below has no more of the chain.
    @Override
    public BlockTable acquireByLayers(BlockChain chain, int from, Duration timeout, int layersAStep) {
        return fetcher.acquire(chain, timeout, delegate().acquireByLayers(chain, from, timeout, layersAStep));
    }

    /// Reads here what is here, and takes whole blocks from below for what follows.
    @Override
    public int getRange(BlockChain chain, int from, ByteRange range, List<MemorySegment> into, Duration timeout) {
        long until = clock.deadlineAfter(Timeouts.toNanos(timeout));
        int here = delegate().getRange(chain, from, range, into, timeout);
        int end = from + here;
        Duration left = Duration.ofNanos(Math.max(0, until - clock.nanos()));
        boolean mayHaveMore = here < into.size() && end < chain.length() && left.isPositive();
        return mayHaveMore && !timeout.isZero() && fetcher.mayHave(chain, end)
                ? here + super.getRange(chain, end, range, into.subList(here, into.size()), left)
                : here;
    }

    @Override
    public BlockWriter put(BlockChain chain, int index, int part, Duration timeout) {
        BlockWriter writer = delegate().put(chain, index, part, timeout);
        return replicator == null ? writer : new NearBlockWriter(writer, replicator, chain.prefix(index + 1));
    }

    @Override
    public PutSummary putAll(BlockChain chain, int from, List<MemorySegment> blocks, Duration timeout) {
        PutSummary summary = delegate().putAll(chain, from, blocks, timeout);
        int end = from + summary.accepted();
        for (int at = from; replicator != null && summary.stored() > 0 && at < end; ) {
            at = BlockGroups.of(chain.blockTokens()).end(at, end);
            replicator.enqueue(chain.prefix(at));
        }
        return summary;
    }

    /// @throws java.io.UncheckedIOException when a server cannot be reached; it may keep them, the store has
    ///     forgotten them
    @Override
    public int drop(BlockChain chain, int from) {
        if (from < 0 || from >= chain.length() || !registered.contains(chain.namespace())) {
            return delegate().drop(chain, from);
        }
        Runnable over = fetcher.beginDrop(chain, from);
        try {
            int dropped = delegate().drop(chain, from);
            awaitInFlight();
            below.drop(chain, from);
            return dropped;
        } finally {
            over.run();
        }
    }

    /// @throws java.io.UncheckedIOException when a server cannot be reached; it may keep them, the store has
    ///     forgotten them
    @Override
    public long drop(Namespace namespace) {
        if (!registered.contains(namespace)) {
            return delegate().drop(namespace);
        }
        Runnable over = fetcher.beginDrop(namespace);
        try {
            long dropped = delegate().drop(namespace);
            awaitInFlight();
            below.drop(namespace);
            return dropped;
        } finally {
            over.run();
        }
    }

    /// Waits for blocks that are on their way down, as they must not arrive there after the drop. Blocks still
    /// in the queue are looked up again before they are sent, and are gone by then.
    private void awaitInFlight() {
        if (replicator != null) {
            replicator.await(false);
        }
    }

    /// Waits until all queued blocks have been stored below.
    public void awaitReplication() {
        if (replicator != null) {
            replicator.await(true);
        }
    }

    /// Returns the number of blocks that came from below.
    public long fetchedCount() {
        return fetcher.fetchedCount();
    }

    /// Returns the number of blocks from below that did not match their checksum, and were discarded.
    public long corruptCount() {
        return fetcher.corruptCount();
    }

    /// Returns the number of blocks, or runs of them, that were not stored below as the queue was full or it
    /// failed.
    public long notReplicatedCount() {
        return replicator == null ? 0 : replicator.dropped.sum();
    }

    @Override
    public void close() {
        if (replicator != null) {
            replicator.close();
        }
        fetcher.close();
        below.close();
        delegate().close();
    }

    /// Stores what the store has of the last group of a chain below.
    ///
    /// @return whether all of it is there now
    private boolean replicate(BlockChain chain) {
        int first = BlockGroups.of(chain.blockTokens()).start(chain.length() - 1);
        try (BlockTable table = delegate().acquireCopy(chain, first, NO_WAIT)) {
            List<MemorySegment> blocks = IntStream.range(first, table.readyEnd())
                    .mapToObj(table::segment)
                    .toList();
            return blocks.isEmpty()
                    || below.putAll(chain, first, blocks, NO_WAIT).accepted() == blocks.size();
        }
    }

    /// Stores new blocks of the store below, in the background. The queue holds keys of blocks, not their
    /// bytes, and has a limit. Blocks beyond it, or that are refused, are misses below until they are put the
    /// next time.
    ///
    /// **Threads.** Any may enqueue; one of its own replicates.
    private final class Replicator implements AutoCloseable {

        private final Executor executor;
        private final Deque<BlockChain> queue = new ArrayDeque<>();
        private final LongAdder dropped = new LongAdder();
        private final long never = clock.deadlineAfter(Long.MAX_VALUE);
        private boolean replicating;
        private long rounds;
        private boolean closed;
        private boolean ended;

        Replicator(Executor executor) {
            this.executor = executor;
        }

        /// Begins, on a thread of the executor, which is busy until this is closed.
        void start() {
            executor.execute(this::run);
        }

        /// Queues the last block of a chain. Of a chain that grows block by block, only the longest stays queued.
        synchronized void enqueue(BlockChain chain) {
            if (!registered.contains(chain.namespace())) {
                return;
            }
            BlockChain last = queue.peekLast();
            if (last != null && extendsByOneBlock(last, chain)) {
                queue.removeLast();
            } else if (queue.size() == MAX_QUEUED) {
                dropped.increment();
                return;
            }
            queue.addLast(chain);
            clock.wake(this);
        }

        /// Returns whether a chain extends another by one block, in the same group.
        private static boolean extendsByOneBlock(BlockChain shorter, BlockChain longer) {
            int at = shorter.length() - 1;
            return longer.length() == shorter.length() + 1
                    && BlockGroups.of(longer.blockTokens()).start(at + 1) <= at
                    && longer.namespace().equals(shorter.namespace())
                    && longer.keyHi(at) == shorter.keyHi(at)
                    && longer.keyLo(at) == shorter.keyLo(at);
        }

        private void run() {
            try {
                for (BlockChain next = next(); next != null; next = next()) {
                    if (!isReplicated(next)) {
                        dropped.increment();
                    }
                }
            } finally {
                end();
            }
        }

        private boolean isReplicated(BlockChain chain) {
            try {
                return replicate(chain);
            } catch (RuntimeException failed) {
                System.getLogger(NearKvCache.class.getName())
                        .log(System.Logger.Level.DEBUG, "a group was not stored below", failed);
                return false;
            }
        }

        private synchronized void end() {
            ended = true;
            clock.wake(this);
        }

        private synchronized @Nullable BlockChain next() {
            replicating = false;
            rounds++;
            clock.wake(this);
            try {
                while (queue.isEmpty() && !closed) {
                    clock.await(this, never);
                }
            } catch (InterruptedException stopped) {
                closed = true;
            }
            replicating = !closed;
            return closed ? null : queue.pollFirst();
        }

        /// Waits until the blocks that are on their way down have arrived or failed.
        ///
        /// @param queuedToo whether those in the queue have to be stored, too
        synchronized void await(boolean queuedToo) {
            long present = rounds;
            try {
                while (!closed && (queuedToo ? replicating || !queue.isEmpty() : replicating && rounds == present)) {
                    clock.await(this, never);
                }
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }

        /// Waits until the blocks that are on their way down have arrived or failed.
        @Override
        public synchronized void close() {
            closed = true;
            clock.wake(this);
            try {
                while (!ended) {
                    clock.await(this, never);
                }
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /// A writer of the store that has its sealed block stored below.
    ///
    /// @param chain up to the block
    private record NearBlockWriter(BlockWriter writer, Replicator replicator, BlockChain chain) implements BlockWriter {

        @Override
        public PutOutcome outcome() {
            return writer.outcome();
        }

        @Override
        public MemorySegment segment() {
            return writer.segment();
        }

        @Override
        public void copyFrom(MemorySegment source) {
            writer.copyFrom(source);
        }

        @Override
        public SealOutcome seal() {
            return enqueueIfSealed(writer.seal());
        }

        @Override
        public SealOutcome seal(int checksum) {
            return enqueueIfSealed(writer.seal(checksum));
        }

        private SealOutcome enqueueIfSealed(SealOutcome outcome) {
            if (outcome == SealOutcome.SEALED) {
                replicator.enqueue(chain);
            }
            return outcome;
        }

        @Override
        public void close() {
            writer.close();
        }
    }
}
