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
import io.kvcache.transport.cluster.BlockGroup;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// Peers as a tier below an embedded store. It fetches missing blocks from the peers of their group, verifies
/// their checksums and stores them.
///
/// Concurrent fetches of a block share one request (single flight). After a miss at all peers, none is asked again
/// for a short time.
///
/// **Threads.** Any. The caller waits here, no longer than its timeout.
final class PeerStore implements AutoCloseable {

    private static final int MAX_MISSES = 100_000;

    /// Of a peer that was not asked, has failed, or had blocks of which none could be kept. That is no miss.
    private static final int NOT_ASKED = -1;

    private final LocalKvCache local;
    private final PeerDirectory directory;
    private final PeerClock clock;
    private final Cache<BlockKey, Boolean> misses;
    private final Map<BlockKey, SingleFlight> flights = new ConcurrentHashMap<>();
    private final InFlightFetches fetches;
    private final LongAdder fetched = new LongAdder();
    private final LongAdder copied = new LongAdder();

    PeerStore(LocalKvCache local, PeerDirectory directory, PeerOptions options, PeerClock clock) {
        this.local = local;
        this.directory = directory;
        this.clock = clock;
        fetches = new InFlightFetches(clock);
        misses = Caffeine.newBuilder()
                .maximumSize(MAX_MISSES)
                .expireAfterWrite(options.missTtl())
                .ticker(clock::nanos)
                .executor(Runnable::run)
                .build();
    }

    /// Returns whether a peer may have a block that the store lacks.
    boolean mayHave(BlockChain chain, int block) {
        return misses.getIfPresent(chain.key(block)) == null
                && !directory.holders(directory.group(chain, block)).isEmpty();
    }

    /// Returns whether what is fetched of a group is a copy, as another store owns it.
    ///
    /// @param chain of the group, not empty
    boolean isCopy(BlockChain chain) {
        return directory.isCopy(directory.group(chain, 0));
    }

    /// @throws IllegalArgumentException when the layout's text leaves no room for what marks groups
    void checkName(Namespace namespace) {
        var _ = directory.groups(namespace);
    }

    /// Returns the index behind the last block of a block's group.
    int groupEnd(BlockChain chain, int block) {
        return directory.groupEnd(chain, block);
    }

    /// Counts the blocks that the store would have from an index on, after it has fetched them from a peer.
    ///
    /// @return the block after the last of them; `at` when no peer has any
    int match(BlockChain chain, int at, long timeoutNanos) {
        long until = clock.nanos() + timeoutNanos;
        return askHolders(chain, at, timeoutNanos, (peer, group, left) -> {
            PeerCache cache = peer.awaitCacheFor(group.chain().namespace(), until);
            return cache == null ? NOT_ASKED : Math.max(at, group.first() + cache.match(group.chain(), left));
        });
    }

    /// Asks a peer for blocks of a group.
    @FunctionalInterface
    private interface HolderQuestion {

        /// @param leftNanos how long it may take
        /// @return the block after the last that was found, the first missing one for a miss, or [#NOT_ASKED]
        int ask(Peer<PeerCache> peer, BlockGroup group, long leftNanos);
    }

    /// Asks the peers of a group one after another, until one has something. Remembers a miss at all of them.
    ///
    /// @param at first block that is missing
    /// @return the block after the last that was found; `at` when no peer has any
    private int askHolders(BlockChain chain, int at, long timeoutNanos, HolderQuestion question) {
        long start = clock.nanos();
        int asked = 0;
        BlockGroup group = directory.group(chain, at);
        List<Peer<PeerCache>> holders = directory.holders(group);
        for (Peer<PeerCache> peer : holders) {
            long left = timeoutNanos - (clock.nanos() - start);
            int end = left > 0 ? question.ask(peer, group, left) : NOT_ASKED;
            if (end > at) {
                return end;
            }
            asked += end == at ? 1 : 0;
        }
        if (asked == holders.size()) {
            misses.put(chain.key(at), true);
        }
        return at;
    }

    /// Fetches blocks of one group into the store, as many as arrive in time.
    ///
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
            return here > at ? here : fetchFromPeers(chain, at, timeoutNanos - (clock.nanos() - start));
        } finally {
            flights.remove(key, mine);
            mine.end();
        }
    }

    private int fetchFromPeers(BlockChain chain, int at, long timeoutNanos) {
        try (InFlightFetches.Fetch fetch = fetches.begin(chain)) {
            return fetchFromPeers(fetch, chain, at, timeoutNanos);
        }
    }

    private int fetchFromPeers(InFlightFetches.Fetch fetch, BlockChain chain, int at, long timeoutNanos) {
        return askHolders(chain, at, timeoutNanos, (peer, group, left) -> {
            PeerCache cache = fetch.isWanted() ? peer.cacheFor(group.chain().namespace()) : null;
            if (cache == null) {
                return NOT_ASKED;
            }
            int end = fetchFrom(cache, new FetchRequest(peer, fetch, chain, group, at), left);
            if (end > at) {
                copied.add(directory.isCopy(group) ? end - at : 0);
                letGo(cache, group);
            }
            return end;
        });
    }

    /// Tells the peer that a group has moved here.
    private void letGo(PeerCache from, BlockGroup group) {
        if (directory.isMove(group)) {
            from.forget(group.chain());
        }
    }

    private record FetchRequest(
            Peer<PeerCache> peer, InFlightFetches.Fetch fetch, BlockChain chain, BlockGroup group, int at) {}

    /// Fetches blocks of a group from a peer and returns the index after the last one that is local now.
    ///
    /// Returns [#NOT_ASKED] when the peer failed, or had blocks of which the store could keep none. Neither is a
    /// miss. A peer fails when it brings nothing because it does not answer in time, or its block does not match
    /// the checksum.
    private int fetchFrom(PeerCache cache, FetchRequest fetchRequest, long timeoutNanos) {
        Peer<PeerCache> peer = fetchRequest.peer;
        long start = clock.nanos();
        FailurePause.Call begun = peer.beginCall();
        long failedBefore = cache.failureCount() + peer.corrupt.sum();
        int at = fetchRequest.at;
        int first = fetchRequest.group.first();
        boolean had;
        try (BlockTable table = cache.acquire(fetchRequest.group.chain(), at - first, timeoutNanos)) {
            had = table.blocks() > 0;
            boolean more = had;
            while (more && at < first + fetchRequest.group.chain().length()) {
                Duration left = Duration.ofNanos(Math.max(0, timeoutNanos - (clock.nanos() - start)));
                more = table.await(at - first + 1, left) > at - first && store(fetchRequest, at, table, at - first);
                at += more ? 1 : 0;
            }
        }
        boolean late = clock.nanos() - start >= timeoutNanos;
        if (at == fetchRequest.at && (late || cache.failureCount() + peer.corrupt.sum() > failedBefore)) {
            peer.onFailure(begun);
            return NOT_ASKED;
        }
        peer.onSuccess();
        peer.found.add((long) at - fetchRequest.at);
        fetched.add((long) at - fetchRequest.at);
        if (!had) {
            peer.missed.increment();
        }
        return had && at == fetchRequest.at ? NOT_ASKED : at;
    }

    /// Stores a block that the peer sent, unless it was dropped meanwhile or does not match its checksum.
    private boolean store(FetchRequest fetchRequest, int index, BlockTable from, int of) {
        return fetchRequest.fetch.storeUnlessDropped(() -> verifyAndStore(fetchRequest, index, from, of));
    }

    private boolean verifyAndStore(FetchRequest fetchRequest, int index, BlockTable from, int of) {
        try (BlockWriter writer = local.put(fetchRequest.chain, index, 0, KvCache.NO_WAIT)) {
            if (writer.outcome() != PutOutcome.RESERVED) {
                return writer.outcome() == PutOutcome.PRESENT;
            }
            ChunkedCrc sum = new ChunkedCrc();
            sum.copy(from.segment(of), 0, writer.segment());
            if (sum.value() != from.checksum(of)) {
                fetchRequest.peer.corrupt.increment();
                return false;
            }
            return writer.seal(sum.value()) == SealOutcome.SEALED;
        }
    }

    /// Replicates the blocks that the store has of a group to its peers.
    ///
    /// @param chain up to the last block that may be given
    /// @return whether each of them has all of it now
    boolean replicate(BlockChain chain) {
        int last = chain.length() - 1;
        BlockGroup whole = directory.group(chain, last);
        boolean all = true;
        try (BlockTable table = local.acquireCopy(chain, whole.first(), KvCache.NO_WAIT)) {
            int ready = table.readyBlocks();
            List<MemorySegment> blocks = IntStream.range(whole.first(), whole.first() + ready)
                    .mapToObj(table::segment)
                    .toList();
            for (Peer<PeerCache> peer : directory.heirs(whole)) {
                PeerCache cache =
                        blocks.isEmpty() ? null : peer.cacheFor(whole.chain().namespace());
                all &= blocks.isEmpty() || (cache != null && replicate(peer, cache, whole, blocks) == ready);
            }
        }
        return all;
    }

    private static int replicate(Peer<PeerCache> peer, PeerCache cache, BlockGroup group, List<MemorySegment> blocks) {
        long failedBefore = cache.failureCount();
        int accepted = cache.putAll(group.chain().prefix(blocks.size()), blocks).accepted();
        if (cache.failureCount() > failedBefore) {
            peer.onFailure();
        } else {
            peer.onSuccess();
        }
        peer.replicated.add(accepted);
        return accepted;
    }

    /// Begins a drop, here and at peers. Blocks of it that arrive until its end are not stored.
    ///
    /// @return to be run when it is over
    Runnable beginDrop(BlockChain chain, int from) {
        return fetches.drop(chain, from);
    }

    /// Begins a drop of a namespace.
    Runnable beginDrop(Namespace namespace) {
        return fetches.drop(namespace);
    }

    /// Drops a block of a chain, and all behind it, at the peers.
    ///
    /// @throws UncheckedIOException when one of them did not answer; the others have forgotten it
    void drop(BlockChain chain, int from) {
        List<String> unreached = new ArrayList<>();
        int at = directory.mirrors().isEmpty() ? chain.length() : from;
        for (; at < chain.length(); at = directory.groupEnd(chain, at)) {
            BlockGroup group = directory.group(chain, at);
            int offset = at - group.first();
            for (Peer<PeerCache> peer : directory.holders(group)) {
                drop(peer, group.chain().namespace(), cache -> cache.drop(group.chain(), offset), unreached);
            }
        }
        throwIfUnreached(unreached);
    }

    /// Drops all blocks of a namespace at the peers.
    ///
    /// @throws UncheckedIOException when one of them did not answer; the others have forgotten them
    void drop(Namespace namespace) {
        List<String> unreached = new ArrayList<>();
        Namespace groups = directory.groups(namespace);
        directory.mirrors().forEach(peer -> drop(peer, groups, cache -> cache.drop(groups), unreached));
        throwIfUnreached(unreached);
    }

    private static void drop(Peer<PeerCache> peer, Namespace groups, Consumer<PeerCache> what, List<String> unreached) {
        PeerCache cache = peer.cacheFor(groups);
        try {
            if (cache == null) {
                unreached.add(peer.name());
            } else {
                what.accept(cache);
            }
        } catch (UncheckedIOException unanswered) {
            peer.onFailure();
            unreached.add(peer.name());
        }
    }

    private static void throwIfUnreached(List<String> unreached) {
        if (!unreached.isEmpty()) {
            String names = unreached.stream().distinct().collect(Collectors.joining(", "));
            throw new UncheckedIOException(
                    new IOException("not reached, and may keep what was dropped here: " + names));
        }
    }

    List<PeerStats> stats() {
        return directory.all().stream().map(Peer::stats).toList();
    }

    /// Returns the number of blocks that peers have brought, those that are no peers any more among them.
    long fetchedCount() {
        return fetched.sum();
    }

    /// Returns the number of those that are copies of what other servers own.
    long copiedCount() {
        return copied.sum();
    }

    /// Returns the number of blocks from peers that did not match their checksum.
    long corruptCount() {
        return directory.all().stream().mapToLong(peer -> peer.corrupt.sum()).sum();
    }

    @Override
    public void close() {
        directory.close();
    }

    @Override
    public String toString() {
        return "peers " + directory.all().stream().map(Peer::name).toList();
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
