package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.CacheStats;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutSummary;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.remote.RemoteKvCache;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// An embedded store with other servers below it.
///
/// ```java
/// KvCache cache = PeeredKvCache.over(TieredKvCache.builder().hostBytes(64L << 30).build(),
///         List.of("kv-0:7420", "kv-1:7420", "kv-2:7420"), PeerOptions.DEFAULTS);
/// ```
///
/// **Get.** `acquire` with a time-out asks peers for what the store has not, group by group of 64 blocks; what
/// comes is kept in the store, and the table grows by it in chain order. Without a time-out, and by `match`,
/// nobody is asked.
///
/// **Put.** What is sealed here is given to the peers whose group it is, beside the caller. What was given
/// stays there when it is evicted here.
///
/// **Failures.** A peer that does not answer, or not in time, is not asked for 100 ms, then twice as long
/// each time up to 10 s; meanwhile its groups are misses, or their next keepers' where there are
/// `replicas`. Nobody waits for a peer beyond its own time-out. `drop` alone needs all of them: it has
/// dropped here when it throws.
///
/// Objects, hints, events and statistics are the store's own.
///
/// **Ownership.** The store is this cache's, which closes it.
///
/// **Threads.** Safe for any number.
public final class PeeredKvCache implements KvCache {

    private final KvCache local;
    private final RemoteTier tier;
    private final PeerThreads threads;
    private final @Nullable Giver giver;

    private PeeredKvCache(KvCache local, RemoteTier tier, PeerThreads threads, @Nullable Giver giver) {
        this.local = local;
        this.tier = tier;
        this.threads = threads;
        this.giver = giver;
    }

    /// A store over servers, which are connected to as they are needed.
    ///
    /// @param local the store, this cache's from now on
    /// @param peers as `host:port`; everybody who shares them lists the same names
    public static PeeredKvCache over(KvCache local, List<String> peers, PeerOptions options) {
        return over(local, peers, options, name -> RemoteKvCache.connect(name));
    }

    /// A store over servers that are connected to by some other way, or with a secret.
    ///
    /// @param local the store, this cache's from now on
    /// @param peers names; everybody who shares them lists the same ones
    public static PeeredKvCache over(KvCache local, List<String> peers, PeerOptions options, PeerConnector connector) {
        return over(
                local,
                peers,
                options,
                new Means(name -> new PeerCache.Remote(connector.connect(name)), PeerThreads.start(options)));
    }

    /// What a test brings of its own.
    ///
    /// @param connector opens a peer's cache by its name
    record Means(Function<String, PeerCache> connector, PeerThreads threads) {}

    static PeeredKvCache over(KvCache local, List<String> peers, PeerOptions options, Means means) {
        if (peers.isEmpty()) {
            throw new IllegalArgumentException("peers are none; allowed: 1 and up");
        }
        PeerThreads threads = means.threads;
        PeerClock clock = threads.clock();
        Peer.Schedule schedule = new Peer.Schedule(clock, options.longestPause().toNanos());
        List<Peer> all = peers.stream()
                .map(name -> new Peer(name, means.connector, schedule, threads.connecting()))
                .toList();
        all.forEach(Peer::connect);
        RemoteTier tier = new RemoteTier(local, all, options, clock);
        Giver giver = options.give() ? new Giver(tier, options.waiting(), clock) : null;
        if (giver != null) {
            giver.start(threads.giving());
        }
        return new PeeredKvCache(local, tier, threads, giver);
    }

    /// @throws IllegalArgumentException also when the layout's text leaves no room for what marks groups
    @Override
    public void register(Namespace namespace) {
        if (!namespace.parts().isEmpty()) {
            BlockGroup.namespace(namespace);
        }
        local.register(namespace);
    }

    @Override
    public Match match(BlockChain chain) {
        return local.match(chain);
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, long timeoutNanos) {
        long until = threads.clock().after(timeoutNanos);
        BlockTable base = local.acquire(chain, from, timeoutNanos);
        if (timeoutNanos == NO_WAIT || base.endBlock() == chain.length()) {
            return base;
        }
        PeerTable table = new PeerTable(base, chain.length(), threads.clock());
        Runnable end = threads.clock().at(until, table::end); // also where other fetches are before this one
        try {
            threads.fetching().execute(new Fetch(this, chain, table, new End(until, end)));
        } catch (RejectedExecutionException closing) {
            end.run();
            table.end();
        }
        return table;
    }

    /// When a table gets no more, and what takes that back.
    private record End(long nanos, Runnable never) {}

    /// Brings what a table lacks, group by group.
    private record Fetch(PeeredKvCache of, BlockChain chain, PeerTable table, End end) implements Runnable {

        @Override
        public void run() {
            try {
                int at = table.had();
                boolean more = true;
                while (more && at < chain.length() && !table.over()) {
                    int after = next(at);
                    more = after > at;
                    at = after;
                }
            } finally {
                over();
            }
        }

        /// Nothing more comes.
        void over() {
            end.never.run();
            table.end();
        }

        private int next(int at) {
            long left = end.nanos - of.threads.clock().nanos();
            BlockChain wanted = chain.prefix(BlockGroup.end(at, chain.length()));
            int end = left > 0 ? of.tier.fetch(wanted, at, left) : at;
            return end > at ? table.append(of.local.acquire(chain.prefix(end), at, NO_WAIT)) : at;
        }
    }

    @Override
    public BlockWriter put(BlockChain chain, int index, int part, long timeoutNanos) {
        BlockWriter writer = local.put(chain, index, part, timeoutNanos);
        return giver == null ? writer : new PeeredWriter(writer, () -> offer(chain, index + 1));
    }

    private void offer(BlockChain chain, int length) {
        if (giver != null) {
            giver.offer(chain.prefix(length));
        }
    }

    @Override
    public PutSummary putAll(BlockChain chain, int from, List<MemorySegment> blocks, long timeoutNanos) {
        PutSummary summary = local.putAll(chain, from, blocks, timeoutNanos);
        int end = from + summary.accepted();
        for (int at = from; summary.stored() > 0 && at < end; at = BlockGroup.end(at, end)) {
            offer(chain, BlockGroup.end(at, end));
        }
        return summary;
    }

    /// @throws java.io.UncheckedIOException when a peer cannot be reached; it may keep them, the store has
    ///     forgotten them
    @Override
    public int drop(BlockChain chain, int from) {
        if (from < 0 || from >= chain.length()) {
            return local.drop(chain, from);
        }
        Runnable over = tier.dropping(chain, from);
        try {
            int dropped = local.drop(chain, from);
            rest();
            tier.drop(chain, from);
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
            return local.drop(namespace);
        }
        Runnable over = tier.dropping(namespace);
        try {
            long dropped = local.drop(namespace);
            rest();
            tier.drop(namespace);
            return dropped;
        } finally {
            over.run();
        }
    }

    /// What is on its way to a peer when it is dropped must not arrive there after the drop. What waits is looked
    /// up again before it is given, and is gone by then.
    private void rest() {
        try {
            if (giver != null) {
                giver.awaitPresent();
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    /// Waits until peers have been given what waited for that.
    public void settle() {
        try {
            if (giver != null) {
                giver.awaitAll();
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public boolean hint(Hint hint) {
        return local.hint(hint);
    }

    @Override
    public int hintObjects(Namespace namespace, List<byte[]> keys, ObjectHint hint) {
        return local.hintObjects(namespace, keys, hint);
    }

    @Override
    public ObjectWriter putObject(Namespace namespace, byte[] key, long bytes, long timeoutNanos) {
        return local.putObject(namespace, key, bytes, timeoutNanos);
    }

    @Override
    public boolean storeObject(Namespace namespace, byte[] key, MemorySegment value, long timeoutNanos) {
        return local.storeObject(namespace, key, value, timeoutNanos);
    }

    @Override
    public @Nullable ObjectView getObject(Namespace namespace, byte[] key) {
        return local.getObject(namespace, key);
    }

    @Override
    public @Nullable ObjectView getObject(Namespace namespace, byte[] key, long timeoutNanos) {
        return local.getObject(namespace, key, timeoutNanos);
    }

    @Override
    public CompletionStage<@Nullable ObjectView> fetchObject(
            Namespace namespace, byte[] key, long timeoutNanos, Executor executor) {
        return local.fetchObject(namespace, key, timeoutNanos, executor);
    }

    @Override
    public boolean containsObject(Namespace namespace, byte[] key) {
        return local.containsObject(namespace, key);
    }

    @Override
    public boolean dropObject(Namespace namespace, byte[] key) {
        return local.dropObject(namespace, key);
    }

    @Override
    public ObjectCatalog objects(Namespace namespace) {
        return local.objects(namespace);
    }

    @Override
    public boolean flush(long timeoutNanos) {
        return local.flush(timeoutNanos);
    }

    @Override
    public @Nullable MemorySegment hostMemory() {
        return local.hostMemory();
    }

    @Override
    public CacheStats stats() {
        return local.stats();
    }

    /// What each peer has done.
    public List<PeerStats> peerStats() {
        return tier.stats();
    }

    /// Blocks that came from peers with other bytes than were sealed, and were thrown away.
    public long corruptCount() {
        return tier.corruptCount();
    }

    /// Blocks, or runs of them, that peers were not given as too much waited or it failed.
    public long notGivenCount() {
        return giver == null ? 0 : giver.leftCount();
    }

    /// Questions that are on their way are interrupted, which makes misses of them; what they hold of the store
    /// is back when this returns.
    private void stopFetching() {
        for (Runnable never : threads.stop()) {
            if (never instanceof Fetch fetch) {
                fetch.over();
            }
        }
    }

    @Override
    public EventStream events() {
        return local.events();
    }

    @Override
    public void close() {
        if (giver != null) {
            giver.close();
        }
        stopFetching();
        tier.close();
        local.close();
    }
}
