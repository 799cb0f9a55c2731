package io.kvcache.server.cluster;

import io.kvcache.cluster.ClusterProof;
import io.kvcache.cluster.ClusterSecret;
import io.kvcache.cluster.ClusterTls;
import io.kvcache.cluster.DropExchange;
import io.kvcache.cluster.JGroupsMembership;
import io.kvcache.cluster.JGroupsMembership.Settings;
import io.kvcache.cluster.Membership;
import io.kvcache.cluster.SettingsComparison;
import io.kvcache.cluster.ViewKeeper;
import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.Match;
import io.kvcache.core.hash.Sha256;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.cluster.ValueHandover.SlotMoves;
import io.kvcache.server.config.ClusterConfig;
import io.kvcache.server.config.ClusterConfig.ClusterAddress;
import io.kvcache.server.config.ClusterConfig.ClusterTlsConfig;
import io.kvcache.server.config.DiskTierConfig.DiskConfig;
import io.kvcache.server.config.HostResources.HostName;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TrustDomainConfig;
import io.kvcache.server.forward.OwnerConnections;
import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.keyspace.HashSlotOwnership;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.DropListener;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.endpoint.CommandRunner;
import io.kvcache.transport.peer.PeeredKvCache;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// This server's part in its cluster: it joins, serves, drains and leaves, in this order.
///
/// **Ownership.** [#close] leaves the cluster; the endpoint that tells clients the view is closed before.
///
/// **Threads.** Any.
public final class ClusterMember implements AutoCloseable {

    private static final Logger LOG = System.getLogger(ClusterMember.class.getName());

    private static final long STEP_MILLIS = 100;

    /// How long a start waits for the drops of the other servers. Where none serves, this one does after that.
    private static final long AGREE_SECONDS = 10;

    private final ClusterConfig config;
    private final @Nullable ClusterTls tls;
    private final ViewKeeper keeper;
    private final ServerConnector connector;
    private volatile @Nullable CommandRunner commands;
    private final CountDownLatch served = new CountDownLatch(1);
    private volatile NodeState state = NodeState.JOINING;
    private volatile boolean inView;
    private boolean leaves;
    private volatile @Nullable PeeredKvCache handover;
    private volatile @Nullable DrainHandover drainHandover;
    private volatile @Nullable ValueHandover valueHandover;
    private @Nullable SlotMoves slotMoves;
    private @Nullable ClusterLoad load;
    private Duration drainLimit = Duration.ZERO;
    private @Nullable GroupDrops drops;
    private @Nullable DropExchange exchange;
    private @Nullable SettingsComparison settings;
    private @Nullable Thread follower;

    /// @param tls null for a server without certificates
    public ClusterMember(ClusterConfig config, Membership membership, @Nullable ClusterTls tls) {
        this.config = config;
        this.tls = tls;
        keeper = new ViewKeeper(config.name(), membership, config.failureAfter(), System::nanoTime);
        connector = new ServerConnector(keeper, config);
    }

    /// Makes a member that has not joined yet. Opens no port.
    ///
    /// @throws IOException when the certificates cannot be used
    public static ClusterMember open(ClusterConfig config) throws IOException {
        ClusterTls tls = openTls(config);
        ClusterProof proof = tls == null ? openSecret() : tls;
        ClusterAddress dns = config.dns();
        Settings settings = new Settings(
                config.name(),
                config.listen().toString(),
                config.seeds().stream().map(ClusterAddress::toString).toList(),
                dns == null ? "" : dns.toString(),
                proof,
                config.failureAfter());
        return new ClusterMember(config, new JGroupsMembership(settings), tls);
    }

    /// Returns null where the servers have no certificates.
    static @Nullable ClusterTls openTls(ClusterConfig config) throws IOException {
        ClusterTlsConfig files = config.tls();
        if (files == null) {
            return null;
        }
        try {
            ClusterTls tls =
                    ClusterTls.open(Path.of(files.certificate()), Path.of(files.key()), Path.of(files.authority()));
            tls.requireName(config.node());
            return tls;
        } catch (IOException unusable) {
            throw new IOException("cluster.tls cannot be used: " + unusable.getMessage(), unusable);
        }
    }

    private static ClusterSecret openSecret() throws IOException {
        try {
            ClusterSecret secret = ClusterSecret.open(ClusterSecret.fileOfUser());
            LOG.log(
                    Level.INFO,
                    "Without cluster.tls, the servers of the cluster are those that know the secret in "
                            + secret.file());
            return secret;
        } catch (IOException unusable) {
            throw withoutSecret(unusable);
        }
    }

    /// Says why servers without certificates cannot prove themselves either.
    static IOException withoutSecret(IOException unusable) {
        return new IOException(
                "cluster.tls is not set, and the secret by which servers of one host know each other cannot be used: "
                        + unusable.getMessage(),
                unusable);
    }

    /// Opens a cache over the server's store that fetches groups from their former owners, and applies the drops
    /// that this server has missed. It is closed with this, and the stores stay their caller's.
    ///
    /// @param store the shared one
    /// @param domains those of trust domains
    public LocalKvCache openStore(TieredKvCache store, Collection<KvCache> domains, ServerConfig server) {
        List<TieredKvCache> stores = new ArrayList<>(List.of(store));
        domains.forEach(domain -> stores.add((TieredKvCache) domain)); // as StoreFactory makes them
        List<DiskConfig> disks = server.disks().disks();
        GroupDrops opened = GroupDrops.open(
                stores, disks.isEmpty() ? null : disks.getFirst().directory());
        DropExchange log = new DropExchange(opened.log(), opened, keeper, System::currentTimeMillis);
        SettingsComparison comparison = new SettingsComparison(keeper, SettingsDigests.of(config, server));
        PeeredKvCache cache = PeeredKvCache.ofCluster(
                new BorrowedStore(store, this::isJoining),
                new PeeredKvCache.Handover(config.node(), keeper, config.handover(), log::digest),
                connector::connect);
        opened.serveThrough(cache);
        load = new ClusterLoad(config.node(), keeper, connector, store::stats);
        drops = opened;
        exchange = log;
        settings = comparison;
        handover = cache;
        drainLimit = server.shutdown().drain();
        return cache;
    }

    /// Has this server give what is not its own any more to the owners. Call it after [#openStore].
    ///
    /// @param values of each tenant
    /// @param forwarder that no client's requests use, closed by its owner before this
    public void openHandover(
            Map<String, KeyspaceRouter> values, HashSlotOwnership ownership, RequestForwarder forwarder) {
        ValueHandover ofValues = new ValueHandover(values, forwarder);
        valueHandover = ofValues;
        slotMoves = new SlotMoves(ownership, keeper, ofValues, config.handover());
        drainHandover =
                new DrainHandover(Objects.requireNonNull(handover, "openStore has not been called"), ofValues, keeper);
    }

    /// A store that another owner closes, and that answers nothing of the cluster's blocks while this server may
    /// not have applied all drops.
    private static final class BorrowedStore extends ForwardingKvCache {

        private final BooleanSupplier mayBeOutdated;

        BorrowedStore(LocalKvCache store, BooleanSupplier mayBeOutdated) {
            super(store);
            this.mayBeOutdated = mayBeOutdated;
        }

        private boolean hides(BlockChain chain) {
            return mayBeOutdated.getAsBoolean() && BlockGroup.isGroups(chain.namespace());
        }

        @Override
        public Match match(BlockChain chain) {
            return hides(chain) ? new Match(0, 0, 0) : super.match(chain);
        }

        @Override
        public Match match(BlockChain chain, Duration timeout) {
            return hides(chain) ? new Match(0, 0, 0) : super.match(chain, timeout);
        }

        @Override
        public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
            return hides(chain) ? BlockTable.empty(from) : super.acquire(chain, from, timeout);
        }

        @Override
        public BlockTable acquireCopy(BlockChain chain, int from, Duration timeout) {
            return hides(chain) ? BlockTable.empty(from) : super.acquireCopy(chain, from, timeout);
        }

        @Override
        public BlockTable acquireByLayers(BlockChain chain, int from, Duration timeout, int layersAStep) {
            return hides(chain)
                    ? BlockTable.empty(from)
                    : delegate().acquireByLayers(chain, from, timeout, layersAStep);
        }

        @Override
        public int getAll(BlockChain chain, int from, List<MemorySegment> into) {
            return hides(chain) ? 0 : super.getAll(chain, from, into);
        }

        /// By the store itself, which reads ranges on disk where they lie.
        @Override
        public int getRange(BlockChain chain, int from, ByteRange range, List<MemorySegment> into, Duration timeout) {
            return hides(chain) ? 0 : delegate().getRange(chain, from, range, into, timeout);
        }

        @Override
        public void close() {
            // Its owner closes it.
        }
    }

    /// Returns new connections to the other servers, which the caller closes.
    public OwnerConnections openConnections() {
        return new OwnerConnections(connector::connect, keeper);
    }

    /// Runs what other servers pass on from now on.
    public void runCommandsBy(CommandRunner runner) {
        commands = runner;
    }

    /// What runs requests that other servers pass on; busy until [#runCommandsBy].
    public CommandRunner commands() {
        return (tenant, dialect, bytes) -> {
            CommandRunner runner = commands;
            return runner == null ? null : runner.begin(tenant, dialect, bytes);
        };
    }

    private DropExchange requireExchange() {
        return Objects.requireNonNull(exchange, "openStore has not been called");
    }

    private SettingsComparison requireSettings() {
        return Objects.requireNonNull(settings, "openStore has not been called");
    }

    /// Returns the settings that differ at a server of the cluster; null while it has told none.
    @Nullable
    List<String> differencesAt(String server) {
        return requireSettings().differencesAt(server);
    }

    /// Asks all servers what they hold, which takes a second where one does not answer.
    List<ClusterLoad.ServerLoad> load() {
        return Objects.requireNonNull(load, "openStore has not been called").ask();
    }

    /// Hears what clients drop.
    public DropListener dropListener() {
        return requireExchange();
    }

    /// Drops a block of groups and all below it in its group, here and at all other servers; see
    /// [DropExchange#drop].
    ///
    /// @return how many blocks went here
    public long dropEverywhere(Namespace groups, BlockKey from) {
        return requireExchange().drop(groups, from);
    }

    /// Returns the number of drops that this server knows.
    public int dropCount() {
        return requireExchange().size();
    }

    /// Returns how many drops of other servers this one has applied.
    public long appliedDropCount() {
        return requireExchange().appliedCount();
    }

    /// Joins, and returns when the view has this server, which takes some seconds where no other one is there. It
    /// owns nothing before [#serve].
    ///
    /// @param server whose cluster this is
    /// @param port of the transport
    /// @param valuePort of the listener for clients of Redis Cluster, if there is one
    /// @param version of the software
    /// @throws IllegalStateException when the cluster's port cannot be had, or another live server has this name
    public void join(ServerConfig server, int port, int valuePort, String version) {
        LOG.log(Level.INFO, "Joins " + config.describe());
        ClusterNode node = new ClusterNode(
                config.node(), config.weightFor(server.memory().hostBytes()), config.zone(), HostName.detect());
        String address = config.transportAddress(server.transport(), port);
        String values = config.valueAddress(server.access().redisClusterListener(), valuePort);
        long applied = requireExchange().digest();
        try {
            keeper.start(new NodeInfo(
                    node,
                    System.currentTimeMillis(),
                    NodeState.JOINING,
                    address,
                    values,
                    version,
                    config.replicas().features(),
                    applied));
        } catch (IllegalStateException refused) {
            throw new IllegalStateException(
                    refused.getMessage() + " (cluster.node is " + config.node() + ", cluster.listen is "
                            + config.listen() + ")",
                    refused);
        }
        inView = true;
    }

    /// Tells all that this server owns its share, once it has applied what the others have dropped meanwhile.
    /// Waits some seconds for that; after them the server goes on to join by itself.
    public void serve() {
        follower = Thread.ofPlatform().daemon().name("kvcache-cluster-drops").start(this::follow);
        try {
            if (!served.await(AGREE_SECONDS + 1, TimeUnit.SECONDS)) {
                LOG.log(Level.WARNING, "Not serving yet: " + joiningReason());
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    private void follow() {
        DropExchange steps = requireExchange();
        SettingsComparison comparison = requireSettings();
        long start = System.nanoTime();
        while (!Thread.currentThread().isInterrupted()) {
            try {
                steps.step(System.nanoTime());
                if (state == NodeState.JOINING && mayServe(steps, start)) {
                    startServing();
                }
                comparison.step(System.nanoTime());
            } catch (RuntimeException bug) {
                LOG.log(Level.ERROR, "drops or settings of the cluster", bug);
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(STEP_MILLIS));
        }
    }

    private boolean mayServe(DropExchange steps, long startNanos) {
        if (steps.agreesWithServing()) {
            return true;
        }
        boolean alone = keeper.view().serving().isEmpty();
        return alone && System.nanoTime() - startNanos > TimeUnit.SECONDS.toNanos(AGREE_SECONDS);
    }

    private synchronized void startServing() {
        if (!leaves) {
            become(NodeState.SERVING);
            warnIfAlone();
        }
        served.countDown();
    }

    /// A server that the others refuse looks like the first one of its cluster.
    private void warnIfAlone() {
        List<String> others = config.seeds().stream()
                .filter(seed -> !seed.equals(config.listen()))
                .map(ClusterAddress::toString)
                .toList();
        if (keeper.view().nodes().size() == 1 && !others.isEmpty()) {
            LOG.log(
                    Level.WARNING,
                    "Serves alone in cluster " + config.name() + ": no server at cluster.seeds " + others
                            + " has let this one in. They do not run yet, have another cluster.name, or one of the two"
                            + " refuses the other's certificate (cluster.tls) or secret (that of another user)");
        }
    }

    private String joiningReason() {
        return inView
                ? "this server has not applied yet what was dropped while it was away"
                : "the cluster does not know this server yet";
    }

    /// Returns why this server does not serve: a word, and for people perhaps more behind a colon. Empty when it
    /// serves.
    public String notServingReason() {
        return switch (state) {
            case JOINING -> "joining: " + joiningReason();
            case SERVING -> "";
            case DRAINING -> "draining";
        };
    }

    /// Tells all that this server is about to leave, so that clients turn to others. Does nothing a second time,
    /// or before [#serve].
    public synchronized void drain() {
        leaves = true;
        if (state == NodeState.SERVING) {
            become(NodeState.DRAINING);
            LOG.log(Level.INFO, "Drains from cluster " + config.name() + ": clients turn to the other servers");
        }
    }

    /// Gives what this server has in memory to those that own it now. Call it after [#drain].
    ///
    /// @param limit how long it may take
    /// @return what came of it, for the log
    public String handOver(Duration limit) {
        DrainHandover opened = drainHandover;
        return opened != null && state == NodeState.DRAINING
                ? opened.run(limit)
                : "Nothing is handed over, as this server was never in the cluster";
    }

    /// What came of an operator's request to drain a server, or to let it serve again.
    enum DrainOutcome {
        ACCEPTED,
        JOINING,
        STOPPING,
        ONLY_SERVER
    }

    /// Drains for an operator: the other servers own everything from now on, and are given what this one has in
    /// memory, in the background. It goes on running. Asked again, it begins nothing new.
    ///
    /// @param force whether it does so even where no other server serves
    synchronized DrainOutcome drainForOperator(boolean force) {
        if (leaves) {
            return DrainOutcome.STOPPING;
        }
        if (state == NodeState.JOINING) {
            return DrainOutcome.JOINING;
        }
        if (state == NodeState.SERVING) {
            boolean alone = keeper.view().serving().stream()
                    .allMatch(server -> server.name().equals(node()));
            if (alone && !force) {
                return DrainOutcome.ONLY_SERVER;
            }
            become(NodeState.DRAINING);
            LOG.log(Level.INFO, "Drains from cluster " + config.name() + " for an operator, and goes on running");
            requireDrainHandover().begin(drainLimit);
        }
        return DrainOutcome.ACCEPTED;
    }

    /// Serves again after [#drainForOperator].
    synchronized DrainOutcome serveAgain() {
        if (leaves) {
            return DrainOutcome.STOPPING;
        }
        if (state == NodeState.JOINING) {
            return DrainOutcome.JOINING;
        }
        if (state == NodeState.DRAINING) {
            requireDrainHandover().restart();
            become(NodeState.SERVING);
            LOG.log(Level.INFO, "Serves again in cluster " + config.name() + " for an operator");
        }
        return DrainOutcome.ACCEPTED;
    }

    /// How far a drain for an operator is.
    DrainHandover.Progress drainProgress() {
        return requireDrainHandover().progress();
    }

    private DrainHandover requireDrainHandover() {
        return Objects.requireNonNull(drainHandover, "openHandover has not been called");
    }

    NodeState state() {
        return state;
    }

    private void become(NodeState next) {
        keeper.setState(next);
        state = next;
    }

    private boolean isJoining() {
        return state == NodeState.JOINING;
    }

    /// The files of its certificate; none without TLS.
    public List<Path> certificateFiles() {
        return tls == null ? List.of() : tls.files();
    }

    /// When its certificate ends; null without TLS.
    public @Nullable Instant certificateExpiry() {
        return tls == null ? null : tls.expiresAt();
    }

    /// Reads the certificate again. Connections that there are stay as they are.
    ///
    /// @throws IOException when a file cannot be used; the certificate from before stays
    public void reloadCertificate() throws IOException {
        if (tls != null) {
            tls.reload();
        }
    }

    /// This server's name.
    public String node() {
        return config.node();
    }

    /// Returns how many blocks it has fetched from their former owners.
    public long handoverBlocks() {
        PeeredKvCache opened = handover;
        return opened == null ? 0 : opened.fetchedCount() - opened.copiedCount();
    }

    /// Returns how many blocks it has fetched as copies of what other servers own.
    public long copiedBlocks() {
        PeeredKvCache opened = handover;
        return opened == null ? 0 : opened.copiedCount();
    }

    /// Returns how many values it has given to the servers that own them.
    public long givenValues() {
        ValueHandover opened = valueHandover;
        return opened == null ? 0 : opened.givenCount();
    }

    /// The views.
    public ViewKeeper views() {
        return keeper;
    }

    /// Leaves. Does nothing where it has not joined.
    @Override
    public void close() {
        endFollower();
        SlotMoves moves = slotMoves;
        if (moves != null) {
            moves.close();
        }
        keeper.close();
        if (drops != null) {
            drops.close();
        }
        DrainHandover drain = drainHandover;
        if (drain != null) {
            drain.awaitBackground(Duration.ofSeconds(AGREE_SECONDS));
        }
        PeeredKvCache opened = handover;
        if (opened != null) {
            opened.close();
        }
    }

    private void endFollower() {
        Thread thread = follower;
        if (thread != null) {
            thread.interrupt();
            try {
                thread.join(Duration.ofSeconds(AGREE_SECONDS));
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /// Digests of the settings that should be the same at all servers of a cluster, as [io.kvcache.cluster]
    /// compares them.
    ///
    /// Secrets, salts and passwords are not among them: a digest of a short one would give it away.
    static final class SettingsDigests {

        private SettingsDigests() {}

        /// Returns digests by the names of settings; tenants' settings have the tenant's name in theirs.
        static SortedMap<String, Long> of(ClusterConfig cluster, ServerConfig server) {
            SortedMap<String, Long> digests = new TreeMap<>();
            digests.put("cluster.failure_after", digest(cluster.failureAfter()));
            digests.put("cluster.handover", digest(cluster.handover()));
            digests.put("cluster.replicas", digest(cluster.replicas()));
            ListenerConfig redisCluster = server.access().redisClusterListener();
            digests.put(
                    "listeners.resp-cluster",
                    redisCluster == null
                            ? digest("none")
                            : digest(redisCluster.auth().auth() + " "
                                    + redisCluster.auth().tenant()));
            List<TenantConfig> tenants = server.access().tenants();
            digests.put(
                    "tenants",
                    digest(tenants.stream().map(TenantConfig::name).sorted().toList()));
            tenants.forEach(tenant -> addTenant(tenant, digests));
            digests.put(
                    "domains",
                    digest(server.access().domains().stream()
                            .map(SettingsDigests::describe)
                            .sorted()
                            .toList()));
            return digests;
        }

        private static void addTenant(TenantConfig tenant, SortedMap<String, Long> digests) {
            String path = "tenants." + tenant.name();
            digests.put(path + ".user", digest(tenant.user()));
            digests.put(path + ".quota", digest(tenant.quotaBytes()));
            digests.put(path + ".weight", digest(tenant.weight()));
            digests.put(path + ".values", digest(tenant.values()));
            digests.put(
                    path + ".prefixes",
                    digest(tenant.keyOwnership().prefixes().stream().sorted().toList()));
        }

        private static String describe(TrustDomainConfig domain) {
            return domain.name() + " " + domain.tenants().stream().sorted().toList();
        }

        /// Of the value's text.
        private static long digest(Object value) {
            byte[] text = value.toString().getBytes(StandardCharsets.UTF_8);
            return ByteBuffer.wrap(Sha256.newDigest().digest(text)).getLong();
        }
    }
}
