package io.kvcache.server;

import io.kvcache.core.KvCache;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.stats.DiskTierStats;
import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.server.cluster.ClusterMember;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.event.EventFeed;
import io.kvcache.server.keyspace.HashSlotOwnership;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.miss.MissCauses;
import io.kvcache.server.miss.MissCauses.RemovalFollower;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.remote.TrustDomainStores;
import io.kvcache.server.trace.TraceCapture;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.use.LruHitRatioEstimator;
import io.kvcache.transport.endpoint.EndpointListener;
import io.netty.util.internal.PlatformDependent;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// The store that a server serves, and what belongs to it: the values of all tenants, the stores of trust domains,
/// engines on its GPUs, and what is known of uses, events and misses.
///
/// **Ownership.** Of all these, until [#close]. The front ends are closed before.
///
/// **Threads.** Any.
final class ServedStore implements AutoCloseable {

    private static final Logger LOG = System.getLogger(ServedStore.class.getName());

    private static final long TICK_MILLIS = 100;

    /// How a policy that learns orders evictions while LRU finds more.
    private static final String LRU = PolicyKind.LRU.commandName();

    private final Clock clock;
    private final long startedNanos;
    private final TieredKvCache cache;
    private final String policy;
    private final boolean durable;
    private final GpuDevices gpus;
    private final TrustDomainStores domains;
    private final @Nullable TraceCapture trace;
    private final @Nullable HashSlotOwnership slotOwnership;
    private final TenantKeyspaces tenants;
    private final LruHitRatioEstimator curve;
    private final EventFeed events;
    private final MissCauses causes = new MissCauses(System::nanoTime);
    private final RemovalFollower removals;
    private final MissLog misses;

    /// Read and written by the housekeeping's thread.
    private boolean recovering = true;

    private ServedStore(
            ServerConfig config,
            Clock clock,
            TieredKvCache cache,
            GpuDevices gpus,
            TrustDomainStores domains,
            @Nullable TraceCapture trace,
            @Nullable ClusterMember cluster)
            throws IOException {
        this.clock = clock;
        startedNanos = clock.nanos();
        this.cache = cache;
        policy = config.memory().policy().commandName();
        durable = config.disks().isDurable();
        this.gpus = gpus;
        this.domains = domains;
        this.trace = trace;
        curve = LruHitRatioEstimator.of(cache);
        if (trace != null) {
            cache.addAccessListener(trace);
        }
        slotOwnership = cluster == null
                ? null
                : new HashSlotOwnership(cluster.node(), cluster.views(), clock, InstantSource.system());
        tenants = TenantKeyspaces.open(cache, clock, config, slotOwnership);
        events = new EventFeed(
                cache,
                Long.toString(InstantSource.system().millis(), Character.MAX_RADIX),
                EventFeed.subscriberSlots(
                        PlatformDependent.maxDirectMemory(),
                        config.access().tenants().size()));
        removals = new RemovalFollower(
                cache.events().withoutObjectPuts(), events::namespace, TenantKeyspaces::isOfKeyspace, causes);
        misses = new MissLog(InstantSource.system(), causes, cache::containsBlock);
        cache.addChainListener(misses);
        tenants.recordMissesTo(misses);
    }

    /// Takes the memory, and begins to read the disks.
    ///
    /// @param cluster that the server joins later; null for none
    /// @throws IOException when a file of salts or of the trace cannot be used
    /// @throws IllegalStateException when the memory or a GPU cannot be had
    /// @throws io.kvcache.tiers.directory.DiskDirectoryException when a directory cannot be used for a disk
    static ServedStore open(ServerConfig config, Clock clock, @Nullable ClusterMember cluster) throws IOException {
        GpuDevices.requireAll(config);
        GpuDevices gpus = GpuDevices.of(config);
        TieredKvCache cache = StoreFactory.open(config, clock, gpus.tiers());
        TrustDomainStores domains = null;
        TraceCapture trace = null;
        try {
            gpus.listen(config, cache);
            domains = TrustDomainStores.open(config.access().domains(), each -> StoreFactory.open(config, each, clock));
            if (config.trace().file() != null) {
                ServerPreflight.requireTraceApart(config);
                trace = TraceCapture.start(
                        clock, config.trace(), config.memory().hostBytes());
            }
            return new ServedStore(config, clock, cache, gpus, domains, trace, cluster);
        } catch (IOException | RuntimeException failed) {
            close(gpus, domains, trace, cache);
            throw failed;
        }
    }

    private static void close(
            GpuDevices gpus, @Nullable TrustDomainStores domains, @Nullable TraceCapture trace, TieredKvCache cache) {
        gpus.close();
        if (trace != null) {
            trace.close();
        }
        if (domains != null) {
            domains.close();
        }
        cache.close();
    }

    TieredKvCache cache() {
        return cache;
    }

    Clock clock() {
        return clock;
    }

    TrustDomainStores domains() {
        return domains;
    }

    GpuDevices gpus() {
        return gpus;
    }

    TenantKeyspaces tenants() {
        return tenants;
    }

    /// Which server of the cluster owns which values; null for a server in none.
    @Nullable
    HashSlotOwnership slotOwnership() {
        return slotOwnership;
    }

    EventFeed events() {
        return events;
    }

    MissLog misses() {
        return misses;
    }

    /// Returns the estimated hit ratio for other memory sizes.
    LruHitRatioEstimator.Report missRatioCurve() {
        return curve.report();
    }

    /// How the trace goes, or null when there is none.
    TraceCapture.@Nullable Stats traceStats() {
        return trace == null ? null : trace.stats();
    }

    /// Counts the requests of other JVMs.
    EndpointListener endpointListener(RequestLatencies latencies) {
        return tenants.transportListener(causes, misses, latencies);
    }

    /// Returns what is not as it should be of the disks now.
    List<String> diskProblems() {
        return cache.diskStats().stream()
                .map(TierTransferStats::problem)
                .filter(problem -> !problem.isEmpty())
                .toList();
    }

    /// Writes what is only in memory to disk.
    ///
    /// @param timeout longest time to wait
    /// @return whether everything is on disk; true for a server without disks
    boolean flush(Duration timeout) {
        return !durable || cache.flush(timeout);
    }

    /// Begins to write to disk what is only in memory, and waits for nothing.
    ///
    /// @return whether there is a disk
    boolean beginFlush() {
        if (durable) {
            cache.flush(KvCache.NO_WAIT);
        }
        return durable;
    }

    /// Has what time brings be done from now on.
    void schedule(MaintenanceScheduler scheduler) {
        scheduler.scheduleRepeating(TICK_MILLIS, this::tick);
        scheduler.scheduleRepeating(TICK_MILLIS, curve::drain);
        scheduler.scheduleReload("salt files", tenants.ownership().files(), tenants.ownership()::reload);
    }

    private void tick() {
        boolean before = recovering;
        recovering = cache.isRecovering();
        if (before && !recovering) {
            logRecovery(cache, clock.nanos() - startedNanos);
            tenants.onRecovered();
        }
        tenants.tick();
        removals.tick();
        misses.tick(cache.lruFallbackReport().followsLru() ? LRU : policy);
    }

    /// Says what the disks held when the server started, and what of it did not count; nothing where there are
    /// none.
    ///
    /// @param nanos since the store was open
    static void logRecovery(TieredKvCache cache, long nanos) {
        DiskTierStats stats = cache.offloadStats();
        if (!stats.disks().isEmpty()) {
            LOG.log(Level.INFO, formatRecovery(stats, nanos));
        }
    }

    static String formatRecovery(DiskTierStats stats, long nanos) {
        return String.format(
                Locale.ROOT,
                "Recovery from disk finished: %,d blocks and values found, %.1f s after the store opened; %,d bytes are on"
                        + " disk now. Left out: %,d replaced or deleted later, %,d without their parent blocks,"
                        + " %,d for want of records in memory",
                stats.restored(),
                nanos / (double) TimeUnit.SECONDS.toNanos(1),
                stats.disks().stream().mapToLong(DiskTierStats.LiveUsage::bytes).sum(),
                stats.superseded(),
                stats.orphans(),
                stats.withoutRecord());
    }

    @Override
    public void close() {
        tenants.releasePins();
        close(gpus, domains, trace, cache);
    }
}
