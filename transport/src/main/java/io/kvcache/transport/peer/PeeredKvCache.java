package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.Hint;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Timeouts;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.BlockGroups;
import io.kvcache.transport.cluster.ViewSource;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// An embedded store with other servers below it.
///
/// ```java
/// KvCache cache = PeeredKvCache.over(TieredKvCache.builder().hostBytes(64L << 30).build(),
///         List.of("kv-0:7420", "kv-1:7420", "kv-2:7420"), PeerOptions.DEFAULTS);
/// ```
///
/// **Get.** `acquire` with a timeout asks peers for missing blocks, one group of the chain after another. The store
/// keeps
/// the blocks that arrive, and the table grows by them in chain order. `match`, and `acquire` without a timeout, ask
/// no peer.
///
/// **Put.** A background thread replicates sealed blocks to the peers of their group. They stay there when this
/// store evicts them.
///
/// **Failures.** A peer that does not reply in time, or sends corrupt blocks, is not asked for 100 ms, then twice
/// as long each time up to 10 s. Meanwhile its groups are misses, or come from the next peer if there are
/// `replicas`. No caller waits for a peer beyond its own timeout. Only `drop` needs all peers; when it throws, the
/// blocks are dropped here.
///
/// Objects, events and statistics are the store's own, and hints but those of expected blocks.
///
/// **Ownership.** The store is this cache's, which closes it.
///
/// **Threads.** Safe for any number.
public final class PeeredKvCache extends ForwardingKvCache {

    private final PeerStore peerStore;
    private final PeerThreads threads;
    private final @Nullable Replicator replicator;
    private final boolean matchesAtPeers;
    private final BackgroundFetches backgroundFetches;

    private PeeredKvCache(
            LocalKvCache local,
            PeerStore tier,
            PeerThreads threads,
            @Nullable Replicator replicator,
            boolean matchesAtPeers) {
        super(local);
        this.matchesAtPeers = matchesAtPeers;
        this.peerStore = tier;
        this.threads = threads;
        this.replicator = replicator;
        backgroundFetches = new BackgroundFetches(tier, threads.fetchExecutor());
    }

    /// Opens a cache over servers, which it connects to at their first use.
    ///
    /// @param local the store, this cache's from now on
    /// @param peers as `host:port`, each once; all stores that share them list the same names
    public static PeeredKvCache over(LocalKvCache local, List<String> peers, PeerOptions options) {
        return over(local, peers, options, name -> RemoteKvCache.connect(name));
    }

    /// Opens a cache over servers that need another transport, or a secret.
    ///
    /// @param local the store, this cache's from now on
    /// @param peers names, each once; all stores that share them list the same ones
    public static PeeredKvCache over(
            LocalKvCache local, List<String> peers, PeerOptions options, PeerConnector connector) {
        return over(
                local,
                peers,
                options,
                new Dependencies(name -> new PeerCache.Remote(connector.connect(name)), PeerThreads.start(options)));
    }

    /// Replacements for tests.
    ///
    /// @param connector opens a peer's cache by its name
    record Dependencies(Function<String, PeerCache> connector, PeerThreads threads) {}

    static PeeredKvCache over(LocalKvCache local, List<String> peers, PeerOptions options, Dependencies dependencies) {
        if (peers.isEmpty()) {
            throw new IllegalArgumentException("no peers; allowed: 1 and up");
        }
        PeerThreads threads = dependencies.threads;
        PeerClock clock = threads.clock();
        Peer.BackoffSettings backoffSettings =
                new Peer.BackoffSettings(clock, options.maxBackoff().toNanos());
        List<Peer<PeerCache>> all = peers.stream()
                .map(name -> new Peer<>(name, dependencies.connector, backoffSettings, threads.connectExecutor()))
                .toList();
        all.forEach(Peer::connect);
        PeerStore tier = new PeerStore(local, new PeerDirectory.Fixed(all, options.replicas()), options, clock);
        Replicator replicator = options.replicate() ? new Replicator(tier, options.maxQueued(), clock) : null;
        if (replicator != null) {
            replicator.start(threads.replicationExecutor());
        }
        return new PeeredKvCache(local, tier, threads, replicator, false);
    }

    /// Opens the cache of a server in a cluster, which fetches groups from their former owners.
    ///
    /// For a time after this server has joined, and while others drain, `acquire` and `match` with a timeout ask
    /// the server that owned a missing group before. The store keeps what comes, and the former owner evicts it
    /// next. In a match, blocks that a former owner has count as those of a disk.
    ///
    /// Of a group that another server owns, they ask the owner, unless the cluster's
    /// [policy][io.kvcache.transport.cluster.ReplicaPolicy] is to have no copies. What comes is a copy: the owner
    /// keeps the group. [io.kvcache.core.Hint.Expect] has missing blocks fetched in the background.
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
                        name -> new PeerCache.Remote(connector.connect(name)),
                        PeerThreads.start(PeerOptions.DEFAULTS)));
    }

    static PeeredKvCache ofCluster(LocalKvCache local, Handover handover, Dependencies dependencies) {
        PeerThreads threads = dependencies.threads;
        PeerClock clock = threads.clock();
        Peer.BackoffSettings backoffSettings = new Peer.BackoffSettings(
                clock, PeerOptions.DEFAULTS.maxBackoff().toNanos());
        PeerDirectory former = new FormerOwners(
                handover,
                clock,
                address -> new Peer<>(address, dependencies.connector, backoffSettings, threads.connectExecutor()));
        PeerStore tier = new PeerStore(local, former, PeerOptions.DEFAULTS, clock);
        return new PeeredKvCache(local, tier, threads, null, true);
    }

    /// Gives the groups in memory to the servers that own them now, for a server that drains. What is on disks alone
    /// stays there.
    ///
    /// @param limit how long it may take; then the rest stays
    /// @return how much was given
    public HandedOver handOver(Duration limit) {
        long until = threads.clock().deadlineAfter(Timeouts.toNanos(limit));
        GroupHandover groups = GroupHandover.of(delegate().events().snapshot());
        ParallelCalls<Integer> calls = new ParallelCalls<>(threads.fetchExecutor(), threads.clock());
        for (int i = 0; i < PeerOptions.DEFAULTS.fetches(); i++) {
            calls.start(() -> giveSome(groups, until));
        }
        int given = calls.results(count -> {}).stream().mapToInt(count -> count).sum();
        return new HandedOver(given, groups.left());
    }

    private int giveSome(GroupHandover groups, long untilNanos) {
        int given = 0;
        while (untilNanos - threads.clock().nanos() > 0) {
            BlockChain chain = groups.next();
            if (chain == null) {
                return given;
            }
            given += peerStore.replicate(chain) ? 1 : 0;
        }
        return given;
    }

    /// What a server that drains has given away.
    ///
    /// @param chains of groups that a new owner has now
    /// @param left chains for which there was no time
    public record HandedOver(int chains, int left) {}

    /// A server of a cluster that takes over groups.
    ///
    /// @param self the server's name
    /// @param views its present view
    /// @param window how long former owners are asked after it has joined, or has met the other side of a partition
    /// @param drops digest of the drops that this server knows; one that has not applied the same is not asked
    public record Handover(String self, ViewSource views, Duration window, LongSupplier drops) {

        /// A server that knows of no drops.
        public Handover(String self, ViewSource views, Duration window) {
            this(self, views, window, () -> 0);
        }
    }

    /// In a cluster, missing blocks that are expected are fetched from other servers in the background. Of a group
    /// that another server owns that is all: requests for a copy need not come, so the store does not wait for
    /// one.
    ///
    /// @return for such a group, whether the blocks are here or will be fetched
    @Override
    public boolean hint(Hint hint) {
        BlockChain chain = hint.chain();
        if (!matchesAtPeers || !(hint instanceof Hint.Expect) || chain.length() == 0) {
            return delegate().hint(hint);
        }
        boolean isCopy = peerStore.isCopy(chain);
        int at = delegate().match(chain).blocks();
        boolean complete = at == chain.length();
        boolean fetched = !complete && peerStore.mayHave(chain, at) && backgroundFetches.add(chain, at);
        return isCopy ? complete || fetched : delegate().hint(hint) || fetched;
    }

    /// @throws IllegalArgumentException also when the layout's text leaves no room for what marks groups
    @Override
    public void register(Namespace namespace) {
        if (!namespace.parts().isEmpty()) {
            peerStore.checkName(namespace);
        }
        delegate().register(namespace);
    }

    @Override
    public Match match(BlockChain chain, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        long until = threads.clock().deadlineAfter(timeoutNanos);
        Match found = delegate().match(chain, timeout);
        int end = found.blocks();
        if (!matchesAtPeers || timeoutNanos == 0 || end == chain.length() || !peerStore.mayHave(chain, end)) {
            return found;
        }
        int more = peerStore.match(chain, end, until - threads.clock().nanos()) - end;
        return new Match(found.deviceBlocks(), found.hostBlocks(), found.diskBlocks() + more);
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
        return acquire(chain, timeout, delegate().acquire(chain, from, timeout));
    }

    /// Layer by layer where no other server has more of the chain.
    @Override
    public BlockTable acquireByLayers(BlockChain chain, int from, Duration timeout, int layersAStep) {
        return acquire(chain, timeout, delegate().acquireByLayers(chain, from, timeout, layersAStep));
    }

    /// @param base what this store has
    private BlockTable acquire(BlockChain chain, Duration timeout, BlockTable base) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        long until = threads.clock().deadlineAfter(timeoutNanos);
        if (timeoutNanos == 0 || base.endBlock() == chain.length() || !peerStore.mayHave(chain, base.endBlock())) {
            return base;
        }
        PeerBlockTable table = new PeerBlockTable(base, chain.length(), threads.clock());
        Runnable end = threads.clock().schedule(until, table::end); // also where other fetches are before this one
        try {
            threads.fetchExecutor().execute(new FetchTask(this, chain, table, new FetchDeadline(until, end)));
        } catch (RejectedExecutionException closing) {
            end.run();
            table.end();
        }
        return table;
    }

    /// Moment at which a table ends, and how to cancel that.
    private record FetchDeadline(long nanos, Runnable cancel) {}

    /// Fetches the blocks that a table lacks, group by group.
    private record FetchTask(PeeredKvCache owner, BlockChain chain, PeerBlockTable table, FetchDeadline fetchDeadline)
            implements Runnable {

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
            fetchDeadline.cancel.run();
            table.end();
        }

        private int next(int at) {
            long left = fetchDeadline.nanos - owner.threads.clock().nanos();
            BlockChain wanted = chain.prefix(owner.peerStore.groupEnd(chain, at));
            int end = left > 0 ? owner.peerStore.fetch(wanted, at, left) : at;
            return end > at ? table.append(owner.delegate().acquire(chain.prefix(end), at, NO_WAIT)) : at;
        }
    }

    /// Reads here what is here, and takes whole blocks of peers for what follows.
    @Override
    public int getRange(BlockChain chain, int from, ByteRange range, List<MemorySegment> into, Duration timeout) {
        long until = threads.clock().deadlineAfter(Timeouts.toNanos(timeout));
        int here = delegate().getRange(chain, from, range, into, timeout);
        int end = from + here;
        Duration left = Duration.ofNanos(Math.max(0, until - threads.clock().nanos()));
        boolean mayHaveMore = here < into.size() && end < chain.length() && left.isPositive();
        return mayHaveMore && !timeout.isZero() && peerStore.mayHave(chain, end)
                ? here + super.getRange(chain, end, range, into.subList(here, into.size()), left)
                : here;
    }

    @Override
    public BlockWriter put(BlockChain chain, int index, int part, Duration timeout) {
        BlockWriter writer = delegate().put(chain, index, part, timeout);
        return replicator == null ? writer : new PeeredBlockWriter(writer, () -> enqueueReplication(chain, index + 1));
    }

    private void enqueueReplication(BlockChain chain, int length) {
        if (replicator != null) {
            replicator.enqueue(chain.prefix(length));
        }
    }

    @Override
    public PutSummary putAll(BlockChain chain, int from, List<MemorySegment> blocks, Duration timeout) {
        PutSummary summary = delegate().putAll(chain, from, blocks, timeout);
        int end = from + summary.accepted();
        BlockGroups groups = BlockGroups.of(chain.blockTokens());
        for (int at = from; summary.stored() > 0 && at < end; at = groups.end(at, end)) {
            enqueueReplication(chain, groups.end(at, end));
        }
        return summary;
    }

    /// @throws java.io.UncheckedIOException when a peer cannot be reached; it may keep them, the store has
    ///     forgotten them
    @Override
    public int drop(BlockChain chain, int from) {
        if (from < 0 || from >= chain.length()) {
            return delegate().drop(chain, from);
        }
        Runnable over = peerStore.beginDrop(chain, from);
        try {
            int dropped = delegate().drop(chain, from);
            awaitInFlight();
            peerStore.drop(chain, from);
            return dropped;
        } finally {
            over.run();
        }
    }

    /// @throws java.io.UncheckedIOException when a peer cannot be reached; it may keep them, the store has
    ///     forgotten them
    @Override
    public long drop(Namespace namespace) {
        if (namespace.parts().isEmpty()) {
            return delegate().drop(namespace);
        }
        Runnable over = peerStore.beginDrop(namespace);
        try {
            long dropped = delegate().drop(namespace);
            awaitInFlight();
            peerStore.drop(namespace);
            return dropped;
        } finally {
            over.run();
        }
    }

    /// Drops something of a namespace here alone. Blocks of it that arrive from other servers meanwhile are not
    /// stored.
    ///
    /// @param drop drops it from the store
    public void dropHere(Namespace namespace, Runnable drop) {
        Runnable over = peerStore.beginDrop(namespace);
        try {
            drop.run();
        } finally {
            over.run();
        }
    }

    /// Waits for blocks that are on their way to a peer, as they must not arrive there after the drop. Blocks
    /// still in the queue are looked up again before they are sent, and are gone by then.
    private void awaitInFlight() {
        try {
            if (replicator != null) {
                replicator.awaitInFlight();
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    /// Waits until all queued blocks have been replicated.
    public void awaitReplication() {
        try {
            if (replicator != null) {
                replicator.awaitIdle();
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    /// Returns the statistics of each peer.
    public List<PeerStats> peerStats() {
        return peerStore.stats();
    }

    /// Returns the number of blocks that peers, or former owners, have brought.
    public long fetchedCount() {
        return peerStore.fetchedCount();
    }

    /// Returns the number of those that are copies of what other servers own.
    public long copiedCount() {
        return peerStore.copiedCount();
    }

    /// Returns the number of blocks from peers that did not match their checksum, and were discarded.
    public long corruptCount() {
        return peerStore.corruptCount();
    }

    /// Returns the number of blocks, or runs of them, that were not replicated as the queue was full or it failed.
    public long notReplicatedCount() {
        return replicator == null ? 0 : replicator.droppedCount();
    }

    /// Interrupts the fetches in flight, which makes them misses. They have released everything of the store when
    /// this returns.
    private void stopFetching() {
        for (Runnable never : threads.stop()) {
            if (never instanceof FetchTask fetchTask) {
                fetchTask.finish();
            }
        }
    }

    @Override
    public void close() {
        if (replicator != null) {
            replicator.close();
        }
        stopFetching();
        peerStore.close();
        delegate().close();
    }

    /// A writer of the store that reports its sealed block.
    ///
    /// @param sealed told once
    private record PeeredBlockWriter(BlockWriter writer, Runnable sealed) implements BlockWriter {

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
            return notifyIfSealed(writer.seal());
        }

        @Override
        public SealOutcome seal(int checksum) {
            return notifyIfSealed(writer.seal(checksum));
        }

        private SealOutcome notifyIfSealed(SealOutcome outcome) {
            if (outcome == SealOutcome.SEALED) {
                sealed.run();
            }
            return outcome;
        }

        @Override
        public void close() {
            writer.close();
        }
    }

    /// Background executors of a [PeeredKvCache], and its clock.
    ///
    /// @param fetchExecutor brings what is missing, so many questions at a time as it has threads
    /// @param connectExecutor never lets one peer wait for another
    /// @param replicationExecutor runs one thing, for as long as the cache is open
    record PeerThreads(
            ExecutorService fetchExecutor,
            ExecutorService connectExecutor,
            ExecutorService replicationExecutor,
            PeerClock clock) {

        private static final long CLOSE_SECONDS = 10;

        /// Starts threads of this process.
        static PeerThreads start(PeerOptions options) {
            return new PeerThreads(
                    Executors.newFixedThreadPool(options.fetches(), daemons("fetch")),
                    Executors.newCachedThreadPool(daemons("connect")),
                    Executors.newCachedThreadPool(daemons("give")),
                    PeerClock.MACHINE);
        }

        private static ThreadFactory daemons(String name) {
            return Thread.ofPlatform()
                    .daemon()
                    .name("kvcache-peer-" + name + "-", 0)
                    .factory();
        }

        /// Interrupts the threads, and waits for those that may use the store.
        ///
        /// @return what never began
        List<Runnable> stop() {
            replicationExecutor.shutdownNow();
            connectExecutor.shutdownNow();
            List<Runnable> never = fetchExecutor.shutdownNow();
            try {
                var _ = fetchExecutor.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
            return never;
        }
    }
}
