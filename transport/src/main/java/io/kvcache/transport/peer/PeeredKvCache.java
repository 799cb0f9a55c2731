package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.Hint;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.Match;
import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Timeouts;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.ViewSource;
import io.kvcache.transport.net.FailurePause;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The cache of a server in a cluster, which fetches groups from other servers.
///
/// For a time after this server has joined, and while others drain, `acquire` and `match` with a timeout ask the
/// server that owned a missing group before. The store keeps what comes, and the former owner evicts it next. In a
/// match, blocks that a former owner has count as those of a disk.
///
/// Of a group that another server owns, they ask the owner, unless the cluster's
/// [policy][io.kvcache.transport.cluster.ReplicaPolicy] is to have no copies. What comes is a copy: the owner
/// keeps the group. [io.kvcache.core.Hint.Expect] has missing blocks fetched in the background.
///
/// **Failures.** A server that does not reply in time, or sends corrupt blocks, is not asked for 100 ms, then
/// twice as long each time up to 10 s. No caller waits for a server beyond its own timeout.
///
/// Objects, events and statistics are the store's own, and hints but those of expected blocks.
///
/// **Ownership.** The store is this cache's, which closes it.
///
/// **Threads.** Safe for any number.
public final class PeeredKvCache extends ForwardingKvCache {

    /// For how long a server that keeps failing is left alone at most.
    static final long MAX_BACKOFF_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final FormerOwners formerOwners;
    private final BlockFetcher fetcher;
    private final BackgroundFetches backgroundFetches;
    private final Dependencies dependencies;
    private final PeerClock clock;
    private final LongAdder copied = new LongAdder();
    private final LongAdder given = new LongAdder();

    /// A server of a cluster that takes over groups.
    ///
    /// @param self the server's name
    /// @param views its present view
    /// @param window how long former owners are asked after it has joined, or has met the other side of a
    ///     partition
    /// @param drops digest of the drops that this server knows; one that has not applied the same is not asked
    public record Handover(String self, ViewSource views, Duration window, LongSupplier drops) {

        /// A server that knows of no drops.
        public Handover(String self, ViewSource views, Duration window) {
            this(self, views, window, () -> 0);
        }
    }

    /// Replacements for tests.
    ///
    /// @param connector connects to a server at its address
    /// @param fetching fetches what is missing
    /// @param connecting never lets one server wait for another
    record Dependencies(
            Function<String, ClusterConnection> connector,
            ExecutorService fetching,
            ExecutorService connecting,
            PeerClock clock) {}

    private PeeredKvCache(LocalKvCache local, Handover handover, Dependencies dependencies) {
        super(local);
        this.dependencies = dependencies;
        clock = dependencies.clock;
        Peer.BackoffSettings backoff = new Peer.BackoffSettings(clock, MAX_BACKOFF_NANOS);
        formerOwners = new FormerOwners(
                handover,
                clock,
                address -> new Peer(address, dependencies.connector, backoff, dependencies.connecting));
        fetcher = new BlockFetcher(local, new OtherServers(), dependencies.fetching, clock, BlockFetcher.MISS_TTL);
        backgroundFetches = new BackgroundFetches(fetcher, dependencies.fetching);
    }

    /// Opens the cache of a server.
    ///
    /// @param local the store, this cache's from now on. Only its namespaces of
    ///     [groups][io.kvcache.transport.cluster.BlockGroup] are asked for elsewhere
    /// @param handover whose groups, and for how long
    /// @param connector connects to another server at its address, which must answer from its own store alone: see
    ///     [io.kvcache.transport.client.RemoteKvCacheBuilder#localOnly]
    public static PeeredKvCache ofCluster(LocalKvCache local, Handover handover, PeerConnector connector) {
        return ofCluster(
                local,
                handover,
                new Dependencies(
                        address -> new ClusterConnection.Remote(connector.connect(address)),
                        Executors.newFixedThreadPool(BlockFetcher.THREADS, daemons("fetch")),
                        Executors.newCachedThreadPool(daemons("connect")),
                        PeerClock.MACHINE));
    }

    static PeeredKvCache ofCluster(LocalKvCache local, Handover handover, Dependencies dependencies) {
        return new PeeredKvCache(local, handover, dependencies);
    }

    private static ThreadFactory daemons(String name) {
        return Thread.ofPlatform()
                .daemon()
                .name("kvcache-peer-" + name + "-", 0)
                .factory();
    }

    /// Asks a server for blocks of a group.
    @FunctionalInterface
    private interface HolderRequest {

        /// @param leftNanos how long it may take
        /// @return the block after the last that was found, the first missing one for a miss, or
        ///     [BlockFetcher#NOT_ASKED]
        int ask(Peer peer, long leftNanos);
    }

    /// Asks the holders of a group one after another, until one has something.
    ///
    /// @param at first block that is missing
    /// @return the block after the last that was found; `at` when no server has any, or
    ///     [BlockFetcher#NOT_ASKED] when
    ///     one of them may have some
    private int askHolders(BlockChain group, int at, long timeoutNanos, HolderRequest request) {
        long start = clock.nanos();
        int asked = 0;
        List<Peer> holders = formerOwners.holders(group);
        for (Peer peer : holders) {
            long left = timeoutNanos - (clock.nanos() - start);
            int end = left > 0 ? request.ask(peer, left) : BlockFetcher.NOT_ASKED;
            if (end > at) {
                return end;
            }
            asked += end == at ? 1 : 0;
        }
        return asked == holders.size() ? at : BlockFetcher.NOT_ASKED;
    }

    /// The servers that hold groups which this one lacks. A chain here is a group.
    private final class OtherServers implements BlockFetcher.Source {

        @Override
        public boolean mayHave(BlockChain chain, int block) {
            return !formerOwners.holders(chain).isEmpty();
        }

        @Override
        public int end(BlockChain chain, int block) {
            return chain.length();
        }

        @Override
        public int fetch(BlockFetcher.Fetch fetch, int at, long timeoutNanos) {
            BlockChain group = fetch.chain();
            return askHolders(group, at, timeoutNanos, (peer, left) -> {
                ClusterConnection from = fetch.isWanted() ? peer.cacheFor(group.namespace()) : null;
                if (from == null) {
                    return BlockFetcher.NOT_ASKED;
                }
                int end = fetchFrom(peer, from, fetch, at, left);
                if (end > at) {
                    copied.add(formerOwners.isCopy(group) ? end - at : 0);
                    if (formerOwners.isMove(group)) {
                        from.cache().hint(new Hint.Forget(group, 0));
                    }
                }
                return end;
            });
        }

        /// A server fails when it brings nothing because it does not answer in time, or its block does not
        /// match the checksum. Neither is a miss.
        private int fetchFrom(Peer peer, ClusterConnection from, BlockFetcher.Fetch fetch, int at, long timeoutNanos) {
            long start = clock.nanos();
            FailurePause.Call begun = peer.beginCall();
            long failedBefore = from.failureCount();
            int end = at;
            boolean found;
            try (BlockTable table = from.cache().acquire(fetch.chain(), at, Duration.ofNanos(timeoutNanos))) {
                found = table.blocks() > 0;
                end = found ? fetch.storeAll(table, at, start + timeoutNanos) : at;
            }
            boolean late = clock.nanos() - start >= timeoutNanos;
            if (end == at && (late || fetch.hasFoundCorrupt() || from.failureCount() > failedBefore)) {
                peer.onFailure(begun);
                return BlockFetcher.NOT_ASKED;
            }
            peer.onSuccess();
            return found && end == at ? BlockFetcher.NOT_ASKED : end;
        }
    }

    /// Missing blocks that are expected are fetched from other servers in the background. Of a group that another
    /// server owns that is all: requests for a copy need not come, so the store does not wait for one.
    ///
    /// @return for such a group, whether the blocks are here or will be fetched
    @Override
    public boolean hint(Hint hint) {
        BlockChain chain = hint.chain();
        if (!(hint instanceof Hint.Expect) || chain.length() == 0) {
            return delegate().hint(hint);
        }
        boolean isCopy = formerOwners.isCopy(chain);
        int at = delegate().match(chain).blocks();
        boolean complete = at == chain.length();
        boolean fetched = !complete && fetcher.mayHave(chain, at) && backgroundFetches.add(chain, at);
        return isCopy ? complete || fetched : delegate().hint(hint) || fetched;
    }

    @Override
    public Match match(BlockChain chain, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        long until = clock.deadlineAfter(timeoutNanos);
        Match found = delegate().match(chain, timeout);
        int end = found.blocks();
        if (timeoutNanos == 0 || end == chain.length() || !fetcher.mayHave(chain, end)) {
            return found;
        }
        int more = matchElsewhere(chain, end, until - clock.nanos()) - end;
        return new Match(found.deviceBlocks(), found.hostBlocks(), found.diskBlocks() + more);
    }

    /// Counts the blocks that the store would have after it has fetched those from an index on.
    private int matchElsewhere(BlockChain group, int at, long timeoutNanos) {
        long until = clock.nanos() + timeoutNanos;
        int end = askHolders(group, at, timeoutNanos, (peer, left) -> {
            ClusterConnection holder = peer.awaitCacheFor(group.namespace(), until);
            return holder == null
                    ? BlockFetcher.NOT_ASKED
                    : Math.max(
                            at,
                            holder.cache().match(group, Duration.ofNanos(left)).blocks());
        });
        if (end == at) {
            fetcher.noteMiss(group, at);
        }
        return Math.max(at, end);
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
        return fetcher.acquire(chain, timeout, delegate().acquire(chain, from, timeout));
    }

    /// Layer by layer where no other server has more of the chain.
    @Override
    public BlockTable acquireByLayers(BlockChain chain, int from, Duration timeout, int layersAStep) {
        return fetcher.acquire(chain, timeout, delegate().acquireByLayers(chain, from, timeout, layersAStep));
    }

    /// Reads here what is here, and takes whole blocks of other servers for what follows.
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

    /// Drops something of a namespace here. Blocks of it that arrive from other servers meanwhile are not stored.
    ///
    /// @param drop drops it from the store
    public void dropHere(Namespace namespace, Runnable drop) {
        Runnable over = fetcher.beginDrop(namespace);
        try {
            drop.run();
        } finally {
            over.run();
        }
    }

    @Override
    public int drop(BlockChain chain, int from) {
        if (from < 0 || from >= chain.length()) {
            return delegate().drop(chain, from);
        }
        Runnable over = fetcher.beginDrop(chain, from);
        try {
            return delegate().drop(chain, from);
        } finally {
            over.run();
        }
    }

    @Override
    public long drop(Namespace namespace) {
        Runnable over = fetcher.beginDrop(namespace);
        try {
            return delegate().drop(namespace);
        } finally {
            over.run();
        }
    }

    /// Gives the groups in memory to the servers that own them now, for a server that drains. What is on disks
    /// alone stays there.
    ///
    /// @param limit how long it may take; then the rest stays
    /// @return how much was given
    public HandedOver handOver(Duration limit) {
        long until = clock.deadlineAfter(Timeouts.toNanos(limit));
        GroupHandover groups = GroupHandover.of(delegate().events().snapshot());
        ParallelCalls<Integer> calls = new ParallelCalls<>(dependencies.fetching, clock);
        for (int i = 0; i < BlockFetcher.THREADS; i++) {
            calls.start(() -> giveSome(groups, until));
        }
        int chains =
                calls.results(count -> {}).stream().mapToInt(count -> count).sum();
        return new HandedOver(chains, groups.left());
    }

    private int giveSome(GroupHandover groups, long untilNanos) {
        int chains = 0;
        while (untilNanos - clock.nanos() > 0) {
            BlockChain chain = groups.next();
            if (chain == null) {
                return chains;
            }
            chains += give(chain) ? 1 : 0;
        }
        return chains;
    }

    /// Gives the blocks that the store has of a group to its new owner.
    ///
    /// @return whether that one has all of them now
    private boolean give(BlockChain group) {
        try (BlockTable table = delegate().acquireCopy(group, 0, NO_WAIT)) {
            List<MemorySegment> blocks = IntStream.range(0, table.readyBlocks())
                    .mapToObj(table::segment)
                    .toList();
            Peer heir = formerOwners.heir(group);
            if (heir == null || blocks.isEmpty()) {
                return true;
            }
            ClusterConnection to = heir.cacheFor(group.namespace());
            return to != null && give(heir, to, group.prefix(blocks.size()), blocks) == blocks.size();
        }
    }

    private int give(Peer heir, ClusterConnection to, BlockChain group, List<MemorySegment> blocks) {
        long failedBefore = to.failureCount();
        int accepted = to.cache().putAll(group, 0, blocks, NO_WAIT).accepted();
        if (to.failureCount() > failedBefore) {
            heir.onFailure();
        } else {
            heir.onSuccess();
        }
        given.add(accepted);
        return accepted;
    }

    /// What a server that drains has given away.
    ///
    /// @param chains of groups that a new owner has now
    /// @param left chains for which there was no time
    public record HandedOver(int chains, int left) {}

    /// Returns the number of blocks that new owners were given, or had already when they were offered.
    public long givenCount() {
        return given.sum();
    }

    /// Returns the number of blocks that other servers have brought.
    public long fetchedCount() {
        return fetcher.fetchedCount();
    }

    /// Returns the number of blocks from other servers that did not match their checksum, and were discarded.
    public long corruptCount() {
        return fetcher.corruptCount();
    }

    /// Returns the number of fetched blocks that are copies of what other servers own.
    public long copiedCount() {
        return copied.sum();
    }

    @Override
    public void close() {
        dependencies.connecting.shutdownNow();
        fetcher.close();
        formerOwners.close();
        delegate().close();
    }

    /// Chains that a store fetches although no caller waits for them, one after another.
    ///
    /// **Threads.** Any. The executor's do the fetching, one of them at a time, so that callers who wait have the
    /// others.
    static final class BackgroundFetches {

        /// What is more is not fetched.
        private static final int MAX_WAITING = 256;

        /// A group has 8k tokens at most: 1 GiB of blocks for the largest models.
        private static final long FETCH_NANOS = TimeUnit.SECONDS.toNanos(2);

        private final BlockFetcher fetcher;
        private final Executor executor;
        private final Queue<Missing> waiting = new ArrayBlockingQueue<>(MAX_WAITING);
        private final AtomicBoolean running = new AtomicBoolean();

        /// @param at first block that is missing
        private record Missing(BlockChain chain, int at) {}

        BackgroundFetches(BlockFetcher fetcher, Executor executor) {
            this.fetcher = fetcher;
            this.executor = executor;
        }

        /// Adds the blocks of a chain from an index on. Blocks behind that block's group are not fetched.
        ///
        /// @return false when too many wait
        boolean add(BlockChain chain, int at) {
            boolean added = waiting.offer(new Missing(chain, at));
            if (added && running.compareAndSet(false, true)) {
                try {
                    executor.execute(this::run);
                } catch (RejectedExecutionException closing) {
                    return false;
                }
            }
            return added;
        }

        private void run() {
            boolean more = true;
            while (more) {
                try {
                    for (Missing next = next(); next != null; next = next()) {
                        var _ = fetcher.fetch(next.chain, next.at, FETCH_NANOS);
                    }
                } finally {
                    running.set(false);
                }
                more = !waiting.isEmpty() && running.compareAndSet(false, true);
            }
        }

        /// Returns null when nothing waits. An interrupt ends all: the store is being closed.
        private @Nullable Missing next() {
            if (Thread.currentThread().isInterrupted()) {
                waiting.clear();
            }
            return waiting.poll();
        }
    }

    /// Chains of the groups that a store has in memory, for a server that gives them away.
    ///
    /// A group is a tree: chains that share its first block. Each chain here ends at a block that has no block
    /// in memory below it, so all of them together have all blocks.
    ///
    /// **Threads.** Any number take chains.
    static final class GroupHandover {

        /// Most blocks that are given: some 100 MiB of heap for their keys.
        private static final int MAX_BLOCKS = 1 << 20;

        private final Queue<BlockChain> chains;

        private GroupHandover(Queue<BlockChain> chains) {
            this.chains = chains;
        }

        /// Returns the next chain, or null when there is none left.
        @Nullable
        BlockChain next() {
            return chains.poll();
        }

        /// Returns the number of chains that no thread has taken.
        int left() {
            return chains.size();
        }

        static GroupHandover of(StoreSnapshot snapshot) {
            Map<BlockKey, CacheEvent> blocks = new HashMap<>();
            Set<BlockKey> parents = new HashSet<>();
            for (CacheEvent event : snapshot.stored()) {
                Namespace namespace = snapshot.namespaces().get(event.namespaceId());
                boolean wanted = event.tier() == TierKind.HOST && namespace != null && BlockGroup.isGroups(namespace);
                if (wanted && blocks.size() < MAX_BLOCKS) {
                    blocks.put(key(event), event);
                    parents.add(parent(event));
                }
            }
            Queue<BlockChain> chains = new ConcurrentLinkedQueue<>();
            for (CacheEvent event : blocks.values()) {
                Namespace namespace = snapshot.namespaces().get(event.namespaceId());
                List<BlockKey> path = parents.contains(key(event)) ? List.of() : path(event, blocks);
                if (namespace != null && !path.isEmpty()) {
                    chains.add(BlockChain.ofKeys(namespace, path));
                }
            }
            return new GroupHandover(chains);
        }

        /// Returns the keys from the group's first block to this one; empty when one is not in memory.
        private static List<BlockKey> path(CacheEvent last, Map<BlockKey, CacheEvent> blocks) {
            Deque<BlockKey> path = new ArrayDeque<>();
            CacheEvent at = last;
            while (at != null) {
                path.addFirst(key(at));
                if (at.depth() == 0) {
                    return new ArrayList<>(path);
                }
                at = blocks.get(parent(at));
            }
            return List.of();
        }

        private static BlockKey key(CacheEvent event) {
            return new BlockKey(event.keyHi(), event.keyLo());
        }

        private static BlockKey parent(CacheEvent event) {
            return new BlockKey(event.parentHi(), event.parentLo());
        }
    }
}
