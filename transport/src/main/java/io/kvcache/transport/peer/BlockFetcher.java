package io.kvcache.transport.peer;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.time.Timeouts;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Predicate;

/// Brings blocks that a store lacks from elsewhere, verifies their checksums and stores them.
///
/// Concurrent fetches of a block share one request (single flight). After a miss, a block is not asked for
/// again for a short time. If a chain is dropped during a fetch, no more of its blocks are stored; while the
/// drop is under way elsewhere, no fetch asks for it.
///
/// **Threads.** Any. [#fetch] waits, no longer than its timeout; the executor's threads do so for [#acquire].
final class BlockFetcher implements AutoCloseable {

    /// Fetches at a time for callers that wait.
    static final int THREADS = 4;

    /// For how long blocks that were not found are not asked for again.
    static final Duration MISS_TTL = Duration.ofSeconds(1);

    /// Result of a [Source] that was not asked, has failed, or had blocks of which none could be kept. That is
    /// no miss.
    static final int NOT_ASKED = -1;

    private static final int MAX_MISSES = 100_000;
    private static final long CLOSE_SECONDS = 10;

    private final LocalKvCache local;
    private final Source source;
    private final ExecutorService executor;
    private final PeerClock clock;
    private final long never;
    private final Cache<BlockKey, Boolean> misses;
    private final Map<BlockKey, SingleFlight> flights = new ConcurrentHashMap<>();

    /// Fetches and drops under way, guarded by this.
    private final List<Fetch> fetches = new ArrayList<>();

    private final List<Predicate<BlockChain>> drops = new ArrayList<>();
    private final LongAdder fetched = new LongAdder();
    private final LongAdder corrupt = new LongAdder();

    /// Where missing blocks come from.
    ///
    /// **Threads.** Any.
    interface Source {

        /// Returns whether a block may be there.
        boolean mayHave(BlockChain chain, int block);

        /// Returns the end of the blocks that one fetch asks for, from a missing one on.
        int end(BlockChain chain, int block);

        /// Asks for the blocks of the fetch's chain from an index on, and stores them by [Fetch#storeAll].
        ///
        /// @return the block after the last one that was stored, the first missing one for a miss, or
        ///     [#NOT_ASKED]
        int fetch(Fetch fetch, int at, long timeoutNanos);
    }

    /// @param local takes the blocks
    /// @param executor runs the fetches of [#acquire], as many at a time as it has threads; this closes it
    /// @param missTtl for how long blocks that were not found are not asked for again
    BlockFetcher(LocalKvCache local, Source source, ExecutorService executor, PeerClock clock, Duration missTtl) {
        this.local = local;
        this.source = source;
        this.executor = executor;
        this.clock = clock;
        never = clock.deadlineAfter(Long.MAX_VALUE);
        misses = Caffeine.newBuilder()
                .maximumSize(MAX_MISSES)
                .expireAfterWrite(missTtl)
                .ticker(clock::nanos)
                .executor(Runnable::run)
                .build();
    }

    /// Returns whether a block that the store lacks may be found elsewhere.
    boolean mayHave(BlockChain chain, int block) {
        return misses.getIfPresent(chain.key(block)) == null && source.mayHave(chain, block);
    }

    /// Notes that a block was not found.
    void noteMiss(BlockChain chain, int block) {
        misses.put(chain.key(block), true);
    }

    /// Returns a table of what the store has, which grows by the blocks that are fetched until the timeout.
    ///
    /// @param base the store's own table, the result's from now on
    BlockTable acquire(BlockChain chain, Duration timeout, BlockTable base) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        long until = clock.deadlineAfter(timeoutNanos);
        if (timeoutNanos == 0 || base.endBlock() == chain.length() || !mayHave(chain, base.endBlock())) {
            return base;
        }
        PeerBlockTable table = new PeerBlockTable(base, chain.length(), clock);
        Runnable end = clock.schedule(until, table::end); // also where other fetches are before this one
        try {
            executor.execute(new TableFetch(chain, table, until, end));
        } catch (RejectedExecutionException closing) {
            end.run();
            table.end();
        }
        return table;
    }

    /// Fetches the blocks that a table lacks.
    private final class TableFetch implements Runnable {

        private final BlockChain chain;
        private final PeerBlockTable table;
        private final long untilNanos;
        private final Runnable cancelEnd;

        /// @param untilNanos moment at which the table ends
        /// @param cancelEnd takes that back
        TableFetch(BlockChain chain, PeerBlockTable table, long untilNanos, Runnable cancelEnd) {
            this.chain = chain;
            this.table = table;
            this.untilNanos = untilNanos;
            this.cancelEnd = cancelEnd;
        }

        @Override
        public void run() {
            try {
                int at = table.localEndBlock();
                boolean more = true;
                while (more && at < chain.length() && !table.isFinished()) {
                    int after = next(at);
                    more = after > at;
                    at = after;
                }
            } finally {
                finish();
            }
        }

        /// Ends the table: no more blocks will arrive.
        void finish() {
            cancelEnd.run();
            table.end();
        }

        private int next(int at) {
            long left = untilNanos - clock.nanos();
            BlockChain wanted = chain.prefix(source.end(chain, at));
            int end = left > 0 ? fetch(wanted, at, left) : at;
            return end > at ? table.append(local.acquire(chain.prefix(end), at, KvCache.NO_WAIT)) : at;
        }
    }

    /// Fetches blocks into the store, as many as arrive in time.
    ///
    /// @param chain ends where one fetch ends
    /// @param at first block that is missing
    /// @return the block after the last that is here now
    int fetch(BlockChain chain, int at, long timeoutNanos) {
        BlockKey key = chain.key(at);
        if (misses.getIfPresent(key) != null) {
            return at;
        }
        long start = clock.nanos();
        SingleFlight mine = new SingleFlight(clock);
        SingleFlight before = flights.putIfAbsent(key, mine);
        if (before != null) {
            if (!before.awaitEnd(start + timeoutNanos)) {
                return at;
            }
            if (misses.getIfPresent(key) != null) {
                return at; // that is what it has found
            }
            flights.putIfAbsent(key, mine); // should its chain have been another one from here on
        }
        try {
            int here = local.match(chain).blocks(); // it may have come since it was missed
            return here > at ? here : fetchElsewhere(chain, at, timeoutNanos - (clock.nanos() - start));
        } finally {
            flights.remove(key, mine);
            mine.end();
        }
    }

    private int fetchElsewhere(BlockChain chain, int at, long timeoutNanos) {
        try (Fetch fetch = begin(chain)) {
            int end = source.fetch(fetch, at, timeoutNanos);
            if (end == at) {
                noteMiss(chain, at);
            }
            fetched.add(Math.max(0, end - at));
            return Math.max(at, end);
        }
    }

    private synchronized Fetch begin(BlockChain chain) {
        Fetch fetch = new Fetch(chain);
        fetch.dropped = drops.stream().anyMatch(drop -> drop.test(chain));
        fetches.add(fetch);
        return fetch;
    }

    /// A fetch of blocks of one chain.
    final class Fetch implements AutoCloseable {

        private final BlockChain chain;

        /// Guarded by the fetcher, as `storing`.
        private boolean dropped;

        private boolean storing;
        private boolean foundCorrupt;

        private Fetch(BlockChain chain) {
            this.chain = chain;
        }

        BlockChain chain() {
            return chain;
        }

        /// Returns whether fetched blocks will be kept, as far as is known.
        boolean isWanted() {
            synchronized (BlockFetcher.this) {
                return !dropped;
            }
        }

        /// Returns whether a block did not match its checksum.
        boolean hasFoundCorrupt() {
            return foundCorrupt;
        }

        /// Stores blocks as they arrive: until one does not, is corrupt, or was dropped, or there is no room.
        ///
        /// @param from of the same chain
        /// @param at first block to store
        /// @param untilNanos moment until which blocks are waited for
        /// @return the block after the last one stored
        int storeAll(BlockTable from, int at, long untilNanos) {
            int end = at;
            boolean more = true;
            while (more && end < chain.length()) {
                Duration left = Duration.ofNanos(Math.max(0, untilNanos - clock.nanos()));
                more = from.await(end + 1, left) > end && storeUnlessDropped(from, end);
                end += more ? 1 : 0;
            }
            return end;
        }

        /// A drop that begins meanwhile waits until the block is stored.
        private boolean storeUnlessDropped(BlockTable from, int index) {
            synchronized (BlockFetcher.this) {
                storing = !dropped;
            }
            try {
                return storing && verifyAndStore(from, index);
            } finally {
                synchronized (BlockFetcher.this) {
                    storing = false;
                    clock.wake(BlockFetcher.this);
                }
            }
        }

        private boolean verifyAndStore(BlockTable from, int index) {
            try (BlockWriter writer = local.put(chain, index, 0, KvCache.NO_WAIT)) {
                if (writer.outcome() != PutOutcome.RESERVED) {
                    return writer.outcome() == PutOutcome.PRESENT;
                }
                ChunkedCrc sum = new ChunkedCrc();
                sum.copy(from.segment(index), 0, writer.segment());
                if (sum.value() != from.checksum(index)) {
                    foundCorrupt = true;
                    corrupt.increment();
                    return false;
                }
                return writer.seal(sum.value()) == SealOutcome.SEALED;
            }
        }

        @Override
        public void close() {
            synchronized (BlockFetcher.this) {
                fetches.removeIf(each -> each.equals(this));
            }
        }
    }

    /// Begins to drop a block of a chain and all behind it. Blocks of it that arrive until its end are not stored.
    ///
    /// @return to be run when it is over
    Runnable beginDrop(BlockChain chain, int from) {
        return beginDrop(other -> other.namespace().equals(chain.namespace()) && contains(other, chain, from));
    }

    /// Begins to drop all blocks of a namespace.
    ///
    /// @return as above
    Runnable beginDrop(Namespace namespace) {
        return beginDrop(other -> other.namespace().equals(namespace));
    }

    /// Returns whether a chain contains a block of another one. It compares all places, as engine keys may repeat
    /// at another place.
    private static boolean contains(BlockChain chain, BlockChain of, int block) {
        boolean found = false;
        for (int index = 0; index < chain.length() && !found; index++) {
            found = chain.keyHi(index) == of.keyHi(block) && chain.keyLo(index) == of.keyLo(block);
        }
        return found;
    }

    private synchronized Runnable beginDrop(Predicate<BlockChain> what) {
        drops.add(what);
        for (Fetch each : fetches) {
            each.dropped |= what.test(each.chain);
        }
        awaitStores();
        return () -> endDrop(what);
    }

    private synchronized void endDrop(Predicate<BlockChain> what) {
        drops.removeIf(each -> each.equals(what));
    }

    /// Waits until no fetch stores a block of a dropped chain. That takes no longer than the copy of a block.
    private synchronized void awaitStores() {
        boolean interrupted = false;
        while (fetches.stream().anyMatch(each -> each.dropped && each.storing)) {
            try {
                clock.await(this, never);
            } catch (InterruptedException stopped) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /// Returns the number of blocks that were fetched.
    long fetchedCount() {
        return fetched.sum();
    }

    /// Returns the number of blocks that did not match their checksum, and were discarded.
    long corruptCount() {
        return corrupt.sum();
    }

    /// Interrupts the fetches in flight, which makes them misses. They have released everything of the store
    /// when this returns.
    @Override
    public void close() {
        List<Runnable> notBegun = executor.shutdownNow();
        try {
            var _ = executor.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
        for (Runnable each : notBegun) {
            if (each instanceof TableFetch fetch) {
                fetch.finish();
            }
        }
    }

    /// A fetch in flight, for callers that want the same block.
    ///
    /// **Threads.** Any.
    static final class SingleFlight {

        private final PeerClock clock;
        private boolean ended;

        SingleFlight(PeerClock clock) {
            this.clock = clock;
        }

        /// Ends the fetch, with a result or without.
        synchronized void end() {
            ended = true;
            clock.wake(this);
        }

        /// Waits for the end until a moment; returns whether it came.
        boolean awaitEnd(long untilNanos) {
            boolean late = false;
            try {
                while (!late) {
                    synchronized (this) {
                        if (ended) {
                            return true;
                        }
                        clock.await(this, untilNanos);
                    }
                    late = untilNanos - clock.nanos() <= 0;
                }
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
            return isEnded();
        }

        private synchronized boolean isEnded() {
            return ended;
        }
    }
}
