package io.kvcache.transport.peer;

import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.CacheStats;
import io.kvcache.core.CacheStats.Memory;
import io.kvcache.core.CacheStats.Puts;
import io.kvcache.core.CacheStats.Records;
import io.kvcache.core.CacheStats.Removals;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutSummary;
import io.kvcache.core.RangeQuery;
import io.kvcache.core.check.Preconditions;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.PromptTree;
import io.kvcache.core.time.Timeouts;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.DropMark;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// One cache over all servers of a cluster. A client needs the address of one of them.
///
/// ```java
/// try (var cache = ClusteredKvCache.connect("kv-0:7420", "kv-1:7420")) {
///     cache.register(namespace);
///     // as with an embedded store
/// }
/// ```
///
/// **Places.** A chain is cut into groups ([io.kvcache.transport.cluster.BlockGroups]), and each group lies on one
/// server, which follows from its key and the [view][ClusterView]. The client learns the view from a server and
/// follows its changes. It asks the owners of all groups of a chain at the same time, and writes straight to them.
/// An object lies on the server of its slot ([io.kvcache.transport.cluster.HashSlots]).
///
/// **Copies.** Groups that this client reads much, it reads at up to eight servers; see
/// [io.kvcache.transport.cluster.ReplicaPolicy]. The others of them fetch the group from its owner. A copy that
/// lacks blocks costs another request, and finds no less than the owner has.
///
/// **Failures.** A dead, slow or faulty server is a miss, as in [RemoteKvCache]. From its first failure on, a server
/// is avoided for 100 ms, then twice as long each time up to 10 s; one that was silent meanwhile for four times as long
/// as the call waited, or until it is heard again. Meanwhile its groups are read and written at the
/// next server in their order, which will own them when the view says so. Objects of such a server are misses, and
/// puts of them [io.kvcache.core.PutOutcome#NO_ROOM]. No call fails because of a change of the view.
///
/// **Differences to one store.** A put does not need the block before it where that is of another group. A hint's
/// label loses its session. Drops, statistics and flushes concern all servers. There is no common stream of events:
/// follow those of each server.
///
/// **Threads.** Safe for any number.
public final class ClusteredKvCache implements KvCache {

    private static final long CONNECT_NANOS = Duration.ofSeconds(1).toNanos();

    private final Dependencies dependencies;
    private final ClusterMembers members;
    private final GroupCopies copies;
    private final ClusterBlocks blocks;
    private final ClusterObjects objects;
    private final Map<Namespace, GroupSpace> spaces = new ConcurrentHashMap<>();
    private final AtomicBoolean closed = new AtomicBoolean();
    private final PromptTree prompts = new PromptTree(Caffeine.newBuilder()
            .maximumWeight(PromptTree.maxBytes())
            .weigher(PromptTree::weigh)
            .executor(Runnable::run)
            .build()
            .asMap());

    /// A registered namespace, and that of its groups, or null where it has no blocks.
    private record GroupSpace(Namespace space, @Nullable Namespace groups) {}

    /// Replacements for tests.
    ///
    /// @param connector connects to an address
    /// @param calls runs requests beside the caller
    /// @param connecting never lets one server wait for another, and follows the view
    record Dependencies(
            Function<String, ClusterConnection> connector,
            ExecutorService calls,
            ExecutorService connecting,
            PeerClock clock,
            GroupCopies.Options copies) {}

    private ClusteredKvCache(ClusterMembers members, Dependencies dependencies) {
        this.members = members;
        this.dependencies = dependencies;
        copies = new GroupCopies(dependencies.copies, dependencies.calls, dependencies.clock);
        blocks = new ClusterBlocks(members, copies, dependencies.calls, dependencies.clock, CONNECT_NANOS);
        objects = new ClusterObjects(members, dependencies.clock, CONNECT_NANOS);
    }

    /// Connects to a cluster. A request to one of its servers takes at most a second longer than the call's timeout.
    /// Before it asks the owner of a group, a call may ask a copy, for a second at most.
    ///
    /// @param seeds addresses of one or more of its servers, as [RemoteKvCache#connect] takes them
    /// @throws UncheckedIOException when none can be reached
    /// @throws IllegalStateException when they are in no cluster
    public static ClusteredKvCache connect(String... seeds) {
        return connect(
                List.of(seeds),
                address -> RemoteKvCache.builder(address)
                        .requestTimeout(Duration.ofSeconds(1))
                        .connect());
    }

    /// Connects to a cluster whose servers need a secret, a certificate or other options.
    ///
    /// @param seeds addresses of one or more of its servers
    /// @param connector connects to one server, at an address of the seeds or of the view
    /// @throws UncheckedIOException when none can be reached
    /// @throws IllegalStateException when they are in no cluster
    public static ClusteredKvCache connect(List<String> seeds, PeerConnector connector) {
        return connect(
                seeds,
                new Dependencies(
                        address -> new ClusterConnection.Remote(connector.connect(address)),
                        Executors.newThreadPerTaskExecutor(Thread.ofVirtual()
                                .name("kvcache-cluster-call-", 0)
                                .factory()),
                        Executors.newThreadPerTaskExecutor(Thread.ofVirtual()
                                .name("kvcache-cluster-connect-", 0)
                                .factory()),
                        PeerClock.MACHINE,
                        GroupCopies.Options.DEFAULTS));
    }

    static ClusteredKvCache connect(List<String> seeds, Dependencies dependencies) {
        if (seeds.isEmpty()) {
            throw new IllegalArgumentException("no seeds; allowed: 1 and up");
        }
        Peer.BackoffSettings backoff = new Peer.BackoffSettings(dependencies.clock, PeeredKvCache.MAX_BACKOFF_NANOS);
        try {
            ClusterMembers members =
                    new ClusterMembers(seeds, dependencies.connector, dependencies.connecting, backoff);
            members.start(CONNECT_NANOS);
            return new ClusteredKvCache(members, dependencies);
        } catch (RuntimeException | Error none) {
            dependencies.calls.shutdownNow();
            dependencies.connecting.shutdownNow();
            throw none;
        }
    }

    /// Returns the servers as this client knows them.
    public ClusterView view() {
        return members.route().view();
    }

    /// Returns the addresses of the servers of the view that are connected and have not just failed.
    public List<String> connectedServers() {
        return members.route().all().stream()
                .filter(peer -> peer.connectionIfUsable() != null)
                .map(Peer::name)
                .sorted()
                .toList();
    }

    /// Tokens of the prompts that [#chain] was given: those whose hashes it knew, and those that it hashed.
    public PromptTree.TokenCounts promptTokens() {
        return prompts.counts();
    }

    /// What the copies of groups do for a client of a cluster.
    ///
    /// @param reads groups of which a copy served at least a part
    /// @param missing times that a copy was asked for blocks that it lacked and the owner had
    /// @param requested copies that servers were asked to make, those that were missing among them
    public record CopyStats(long reads, long missing, long requested) {}

    /// Returns what copies of groups have done for this client.
    public CopyStats copyStats() {
        return copies.stats();
    }

    private void requireOpen() {
        if (closed.get()) {
            throw new IllegalStateException("the cache is closed");
        }
    }

    private GroupSpace require(Namespace namespace) {
        requireOpen();
        GroupSpace space = spaces.get(namespace);
        if (space == null) {
            throw new IllegalArgumentException(namespace + " is not registered with this cache");
        }
        return space;
    }

    /// The namespace of a chain's groups.
    private Namespace groupsOf(BlockChain chain) {
        return Objects.requireNonNull(require(chain.namespace()).groups);
    }

    /// @throws IllegalArgumentException also when the layout's text leaves no room for what marks groups
    @Override
    public void register(Namespace namespace) {
        requireOpen();
        Namespace groups = namespace.parts().isEmpty() ? null : BlockGroup.namespace(namespace);
        Namespace told = groups == null ? namespace : groups;
        members.route().all().forEach(peer -> registerAt(peer, told));
        spaces.put(namespace, new GroupSpace(namespace, groups));
    }

    /// Registers with a server now, to hear its refusal. One that is not reached follows when it is used.
    private void registerAt(Peer peer, Namespace namespace) {
        ClusterConnection connection = peer.connectionIfUsable();
        if (connection != null) {
            try {
                connection.register(namespace);
            } catch (UncheckedIOException unanswered) {
                peer.onFailure();
            }
        }
    }

    @Override
    public BlockChain chain(Namespace namespace, int[] tokens) {
        return prompts.chain(namespace, tokens);
    }

    @Override
    public Match match(BlockChain chain) {
        Namespace groups = groupsOf(chain);
        return blocks.match(chain, groups, cache -> cache::match);
    }

    @Override
    public Match match(BlockChain chain, Duration timeout) {
        Timeouts.toNanos(timeout);
        Namespace groups = groupsOf(chain);
        return blocks.match(chain, groups, cache -> group -> cache.match(group, timeout));
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
        Timeouts.toNanos(timeout);
        Preconditions.checkFrom(chain, from);
        return blocks.acquire(chain, groupsOf(chain), from, timeout);
    }

    @Override
    public int getAll(BlockChain chain, int from, List<MemorySegment> into) {
        Preconditions.checkFrom(chain, from);
        Namespace groups = groupsOf(chain);
        Preconditions.checkTargets(chain, into);
        ClusterBlocks.BlockCopier copier = (server, group, first, some, _) -> server.getAll(group, first, some);
        return blocks.copy(chain, groups, new ClusterBlocks.CopyRequest(from, into, NO_WAIT, copier));
    }

    @Override
    public int getRange(BlockChain chain, int from, ByteRange range, List<MemorySegment> into, Duration timeout) {
        Timeouts.toNanos(timeout);
        Namespace groups = groupsOf(chain);
        BlockChain wanted = new RangeQuery(chain, from, range, into).chain();
        ClusterBlocks.BlockCopier copier =
                (server, group, first, some, wait) -> server.getRange(group, first, range, some, wait);
        return blocks.copy(wanted, groups, new ClusterBlocks.CopyRequest(from, into, timeout, copier));
    }

    @Override
    public BlockWriter put(BlockChain chain, int index, int part, Duration timeout) {
        Timeouts.toNanos(timeout);
        Preconditions.checkIndex(chain, index);
        Namespace groups = groupsOf(chain);
        Preconditions.checkPart(chain, part);
        return blocks.put(chain, groups, index, part, timeout);
    }

    @Override
    public PutSummary putAll(BlockChain chain, int from, List<MemorySegment> run, Duration timeout) {
        Timeouts.toNanos(timeout);
        Preconditions.checkRange(chain, from, run.size());
        return blocks.putAll(chain, groupsOf(chain), from, run, timeout);
    }

    /// @return blocks that went at all servers together; a block counts at each server that has it or a copy
    /// @throws UncheckedIOException when a server does not answer. The others have forgotten them, and tell it so
    ///     when they meet it again
    @Override
    public int drop(BlockChain chain, int from) {
        Preconditions.checkFrom(chain, from);
        Namespace groups = groupsOf(chain);
        DropMark mark = newMark();
        return (int) atAll(groups, server -> (long) ClusterBlocks.drop(server, chain, groups, from, mark));
    }

    /// @return blocks and objects that went at all servers together; a block counts at each that has it or a copy
    /// @throws UncheckedIOException when a server does not answer. The others have forgotten all, and tell it of
    ///     the blocks when they meet it again; it may keep objects
    @Override
    public long drop(Namespace namespace) {
        Namespace groups = require(namespace).groups;
        DropMark mark = newMark();
        return atAll(namespace, server -> dropAt(server, namespace, groups, mark));
    }

    private static long dropAt(
            ClusterConnection server, Namespace namespace, @Nullable Namespace groups, DropMark mark) {
        long blocks = 0;
        if (groups != null) {
            server.register(groups);
            blocks = server.drop(groups, mark);
        }
        return blocks + server.drop(namespace, DropMark.NONE);
    }

    /// Servers tell each other of drops. By the mark they recognize those that they know from the client, too.
    private static DropMark newMark() {
        return new DropMark(
                System.currentTimeMillis(), ThreadLocalRandom.current().nextLong() | 1);
    }

    /// Does something at all servers, and adds up what they answer.
    ///
    /// @throws UncheckedIOException that names the servers that did not answer
    private long atAll(Namespace namespace, Function<ClusterConnection, Long> what) {
        List<Peer> all = members.route().all();
        long until = dependencies.clock.deadlineAfter(CONNECT_NANOS);
        ParallelCalls<Long> calls = new ParallelCalls<>(dependencies.calls, dependencies.clock);
        all.forEach(peer -> calls.start(() -> at(peer, namespace, until, what)));
        List<Long> answers = calls.results(answer -> {});
        List<String> unreached = IntStream.range(0, all.size())
                .filter(i -> answers.get(i) < 0)
                .mapToObj(i -> all.get(i).name())
                .toList();
        long sum = answers.stream().mapToLong(answer -> Math.max(0, answer)).sum();
        if (!unreached.isEmpty()) {
            throw new UncheckedIOException(
                    new IOException("not reached, and may keep what was dropped until other servers tell them: "
                            + String.join(", ", unreached)));
        }
        return sum;
    }

    /// Returns -1 when the server was not reached.
    private static long at(Peer peer, Namespace namespace, long untilNanos, Function<ClusterConnection, Long> what) {
        try {
            ClusterRoute.Reached server = ClusterRoute.reach(peer, namespace, untilNanos);
            return server == null ? -1 : what.apply(server.connection());
        } catch (UncheckedIOException unanswered) {
            peer.onFailure();
            return -1;
        }
    }

    @Override
    public boolean hint(Hint hint) {
        return blocks.hint(hint, groupsOf(hint.chain()));
    }

    @Override
    public ObjectWriter putObject(Namespace namespace, byte[] key, long bytes, Duration timeout) {
        Timeouts.toNanos(timeout);
        require(namespace);
        Preconditions.checkKey(key);
        Preconditions.checkSize(bytes);
        return objects.putObject(namespace, key, bytes, timeout);
    }

    @Override
    public boolean storeObject(Namespace namespace, byte[] key, MemorySegment value, Duration timeout) {
        Timeouts.toNanos(timeout);
        require(namespace);
        Preconditions.checkKey(key);
        Preconditions.checkSize(value.byteSize());
        return objects.storeObject(namespace, key, value, timeout);
    }

    @Override
    public @Nullable ObjectView getObject(Namespace namespace, byte[] key, Duration timeout) {
        Timeouts.toNanos(timeout);
        require(namespace);
        Preconditions.checkKey(key);
        return objects.getObject(namespace, key, timeout);
    }

    @Override
    public CompletionStage<@Nullable ObjectView> fetchObject(
            Namespace namespace, byte[] key, Duration timeout, Executor executor) {
        Timeouts.toNanos(timeout);
        require(namespace);
        Preconditions.checkKey(key);
        return objects.fetchObject(namespace, key, timeout, executor);
    }

    @Override
    public boolean containsObject(Namespace namespace, byte[] key) {
        require(namespace);
        Preconditions.checkKey(key);
        return objects.containsObject(namespace, key);
    }

    /// @throws UncheckedIOException when the object's server did not answer; it may have forgotten the object all the
    ///     same
    @Override
    public boolean dropObject(Namespace namespace, byte[] key) {
        require(namespace);
        Preconditions.checkKey(key);
        return objects.dropObject(namespace, key);
    }

    @Override
    public int hintObjects(Namespace namespace, List<byte[]> keys, ObjectHint hint) {
        require(namespace);
        keys.forEach(Preconditions::checkKey);
        return objects.hintObjects(namespace, keys, hint);
    }

    /// @return whether all of it is durable at all servers
    @Override
    public boolean flush(Duration timeout) {
        Timeouts.toNanos(timeout);
        requireOpen();
        ParallelCalls<Boolean> calls = new ParallelCalls<>(dependencies.calls, dependencies.clock);
        members.route().all().forEach(peer -> calls.start(() -> flush(peer, timeout)));
        return calls.results(answer -> {}).stream().allMatch(durable -> durable);
    }

    private static boolean flush(Peer peer, Duration timeout) {
        ClusterConnection connection = peer.connectionIfUsable();
        return connection != null && connection.cache().flush(timeout);
    }

    /// Returns the sums over all servers.
    ///
    /// @throws UncheckedIOException when a server did not answer
    @Override
    public CacheStats stats() {
        requireOpen();
        List<CacheStats> each = new ArrayList<>();
        for (Peer peer : members.route().all()) {
            ClusterConnection connection = peer.connectionIfUsable();
            if (connection == null) {
                throw new UncheckedIOException(new IOException("not connected to " + peer.name()));
            }
            each.add(connection.cache().stats());
        }
        return ClusterStats.sum(each, this::nameOf);
    }

    /// Returns the namespace of the whole chains whose groups a namespace holds, or that namespace itself.
    private Namespace nameOf(Namespace told) {
        return spaces.values().stream()
                .filter(space -> space.groups != null && told.equals(space.groups))
                .map(GroupSpace::space)
                .findFirst()
                .orElse(told);
    }

    /// @throws UnsupportedOperationException always: each server has events of its own
    @Override
    public EventStream events() {
        throw new UnsupportedOperationException(
                "a cluster has no common stream of events; follow those of each server");
    }

    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        members.close();
        dependencies.connecting.shutdownNow();
        dependencies.calls.shutdown();
    }

    /// Statistics of several stores as those of one.
    static final class ClusterStats {

        private ClusterStats() {}

        /// Adds up statistics.
        ///
        /// @param each at least one
        /// @param names the namespace that a server's namespace stands for
        static CacheStats sum(List<CacheStats> each, UnaryOperator<Namespace> names) {
            Map<Namespace, NamespaceStats> namespaces = new LinkedHashMap<>();
            each.stream()
                    .flatMap(stats -> stats.namespaces().stream())
                    .map(stats -> renamed(stats, names.apply(stats.namespace())))
                    .forEach(stats -> namespaces.merge(stats.namespace(), stats, ClusterStats::plus));
            CacheStats all = each.stream().reduce(ClusterStats::plus).orElseThrow();
            return new CacheStats(
                    all.host(),
                    all.records(),
                    all.puts(),
                    all.removals(),
                    all.openTables(),
                    all.droppedAccesses(),
                    new ArrayList<>(namespaces.values()));
        }

        private static CacheStats plus(CacheStats one, CacheStats other) {
            return new CacheStats(
                    plus(one.host(), other.host()),
                    plus(one.records(), other.records()),
                    plus(one.puts(), other.puts()),
                    plus(one.removals(), other.removals()),
                    one.openTables() + other.openTables(),
                    one.droppedAccesses() + other.droppedAccesses(),
                    List.of());
        }

        private static Memory plus(Memory one, Memory other) {
            return new Memory(
                    one.capacityBytes() + other.capacityBytes(),
                    one.heldBytes() + other.heldBytes(),
                    one.slabs() + other.slabs(),
                    one.unusedSlabs() + other.unusedSlabs(),
                    one.slabMoves() + other.slabMoves());
        }

        private static Records plus(Records one, Records other) {
            return new Records(
                    Math.addExact(one.capacity(), other.capacity()),
                    one.live() + other.live(),
                    Math.max(one.bytesEach(), other.bytesEach()));
        }

        private static Puts plus(Puts one, Puts other) {
            return new Puts(
                    one.reserved() + other.reserved(),
                    one.present() + other.present(),
                    one.busy() + other.busy(),
                    one.noParent() + other.noParent(),
                    one.noRoom() + other.noRoom(),
                    one.abandoned() + other.abandoned(),
                    one.foreign() + other.foreign(),
                    one.attemptsWithoutRoom() + other.attemptsWithoutRoom(),
                    one.declined() + other.declined());
        }

        private static Removals plus(Removals one, Removals other) {
            return new Removals(
                    one.evicted() + other.evicted(),
                    one.dropped() + other.dropped(),
                    one.replaced() + other.replaced(),
                    one.quota() + other.quota());
        }

        private static NamespaceStats plus(NamespaceStats one, NamespaceStats other) {
            return new NamespaceStats(
                    one.namespace(),
                    one.blocksRequested() + other.blocksRequested(),
                    one.blocksFound() + other.blocksFound(),
                    one.blocksLoaded() + other.blocksLoaded(),
                    one.blocksFromDevice() + other.blocksFromDevice(),
                    one.objectsRequested() + other.objectsRequested(),
                    one.objectsFound() + other.objectsFound(),
                    one.live() + other.live(),
                    one.liveBytes() + other.liveBytes());
        }

        private static NamespaceStats renamed(NamespaceStats stats, Namespace name) {
            return new NamespaceStats(
                    name,
                    stats.blocksRequested(),
                    stats.blocksFound(),
                    stats.blocksLoaded(),
                    stats.blocksFromDevice(),
                    stats.objectsRequested(),
                    stats.objectsFound(),
                    stats.live(),
                    stats.liveBytes());
        }
    }
}
