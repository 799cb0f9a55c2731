package io.kvcache.server;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Clock;
import io.kvcache.server.config.DiskTierConfig;
import io.kvcache.server.config.RecomputeConfig;
import io.kvcache.server.config.RequestLimits;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TenantConfig.ValueKind;
import io.kvcache.server.keyspace.KeyOwnershipRules;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceOptions;
import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import io.kvcache.server.keyspace.KeyspaceOptions.RecomputeEstimator;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.SlotOwnership;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.miss.MissCauses;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.miss.MissLog.Reason;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.EndpointListener;
import io.kvcache.transport.wire.MessageType;
import java.time.InstantSource;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The values of all tenants, each in a keyspace and a namespace of its own: the same key of two of them is
/// two keys to the store, and nothing here goes from one to the other.
final class TenantKeyspaces {

    private final Map<String, Keyspace> keyspaces;
    private final Supplier<KeyOwnershipRules> labels;

    private TenantKeyspaces(Map<String, Keyspace> keyspaces, Supplier<KeyOwnershipRules> labels) {
        this.keyspaces = Collections.unmodifiableMap(keyspaces);
        this.labels = labels;
    }

    /// @param labels how keys of the default tenant's clients name other tenants
    /// @param slotOwnership null for a server in no cluster
    static TenantKeyspaces open(
            TieredKvCache cache,
            Clock clock,
            ServerConfig config,
            Supplier<KeyOwnershipRules> labels,
            @Nullable SlotOwnership slotOwnership) {
        long existsPinBytes =
                config.memory().hostBytes() / 100 * config.existsPin().percent();
        int count = config.access().tenants().size();
        int weights = config.access().tenants().stream()
                .mapToInt(TenantConfig::weight)
                .sum();
        Map<String, Keyspace> keyspaces = new LinkedHashMap<>();
        for (TenantConfig tenant : config.access().tenants()) {
            Namespace namespace = namespaceOf(tenant.name());
            keyspaces.put(
                    tenant.name(),
                    new Keyspace(
                            cache,
                            namespace,
                            clock,
                            InstantSource.system(),
                            new KeyspaceOptions(
                                    config.existsPin().duration(),
                                    existsPinBytes / count,
                                    config.disks().fetchTimeout(),
                                    tenant.quotaBytes(),
                                    keyspaceLimits(config.requestLimits(), (double) tenant.weight() / weights),
                                    config.disks().prefetch()
                                            && !config.disks().disks().isEmpty(),
                                    recomputeEstimator(config.disks(), cache),
                                    tenant.values() == ValueKind.CONTENT ? null : slotOwnership)));
            if (count > 1) {
                cache.setWeight(namespace, tenant.weight());
            }
        }
        return new TenantKeyspaces(keyspaces, labels);
    }

    private static @Nullable RecomputeEstimator recomputeEstimator(DiskTierConfig disks, TieredKvCache cache) {
        RecomputeConfig prefill = disks.recompute();
        PrefillCost cost = prefill.cost();
        return cost == null || disks.disks().isEmpty()
                ? null
                : new RecomputeEstimator(cost, prefill.chunkTokens(), prefill.deadline(), cache::estimateReadNanos);
    }

    /// Each tenant has a part of the bytes in flight, so that a slow reader does not block other tenants.
    private static KeyspaceLimits keyspaceLimits(RequestLimits values, double part) {
        return new KeyspaceLimits(
                (int) values.keyBytes(),
                values.valueBytes(),
                new ByteBudget((long) (values.inFlightBytes() * part)),
                new ByteBudget((long) (values.sendingBytes() * part)));
    }

    /// Returns the limit on a tenant's values that are being received at one time.
    ByteBudget incomingBudget(String tenant) {
        return keyspaceOf(tenant).keyspaceLimits().incoming();
    }

    /// Reads that found nothing because as much was being sent as may be.
    long throttledReads() {
        return keyspaces.values().stream()
                .mapToLong(keyspace -> keyspace.keyspaceLimits().outgoing().rejectedCount())
                .sum();
    }

    /// Returns the namespace that holds a tenant's values.
    static Namespace namespaceOf(String tenant) {
        return Namespace.objects("objects", tenant);
    }

    /// Returns whether a namespace is one of a keyspace's form.
    static boolean isOfKeyspace(Namespace namespace) {
        return namespaceOf(namespace.tenant()).equals(namespace);
    }

    /// Counts what clients of transport ask of objects as look-ups of their tenant, like those over the other
    /// protocols. Tenants that the settings do not name count with the default one.
    ///
    /// @param causes why such objects have left
    EndpointListener transportListener(MissCauses causes, MissLog log, RequestLatencies latencies) {
        return new EndpointListener() {

            private Keyspace keyspaceOf(Namespace namespace) {
                Keyspace own = keyspaces.get(namespace.owner());
                return own == null ? TenantKeyspaces.this.keyspaceOf(TenantConfig.DEFAULT) : own;
            }

            @Override
            public void onHit(Namespace namespace, byte[] key, long bytes) {
                keyspaceOf(namespace).countHitOfTransport(bytes);
            }

            @Override
            public void onMiss(Namespace namespace, byte[] key, boolean late) {
                BlockKey digest = BlockKey.ofObject(namespace, key);
                Reason reason = late ? Reason.LATE : Reason.of(causes.causeOf(digest));
                keyspaceOf(namespace).countMissOfTransport(reason);
                log.recordValue(namespace, key, reason, () -> causes.departureOf(digest));
            }

            @Override
            public void onAnswered(MessageType type, long nanos) {
                latencies.recordTransport(type.label(), nanos);
            }
        };
    }

    /// By tenant, the configured ones first.
    Map<String, Keyspace> keyspaces() {
        return keyspaces;
    }

    /// The keyspaces that each tenant's clients reach. Clients of the default tenant reach other tenants by
    /// naming them.
    Map<String, KeyspaceRouter> routers() {
        Map<String, KeyspaceRouter> reaches = new LinkedHashMap<>();
        keyspaces.keySet().forEach(tenant -> reaches.put(tenant, routerOf(tenant)));
        return reaches;
    }

    /// Returns the keyspaces that the clients of an existing tenant may use.
    KeyspaceRouter routerOf(String tenant) {
        Keyspace own = keyspaceOf(tenant);
        return tenant.equals(TenantConfig.DEFAULT)
                ? new KeyspaceRouter(own, keyspaces, labels)
                : KeyspaceRouter.of(own);
    }

    Supplier<KeyOwnershipRules> ownershipRules() {
        return labels;
    }

    private Keyspace keyspaceOf(String tenant) {
        Keyspace keyspace = keyspaces.get(tenant);
        if (keyspace == null) {
            throw new IllegalArgumentException("there is no tenant " + tenant);
        }
        return keyspace;
    }

    /// Has misses of all tenants told of from now on; before the keyspaces are used.
    void recordMissesTo(MissLog log) {
        keyspaces.values().forEach(keyspace -> keyspace.recordMissesTo(log));
    }

    void tick() {
        keyspaces.values().forEach(Keyspace::tick);
    }

    /// The store knows all that it had before the start.
    void onRecovered() {
        keyspaces.values().forEach(Keyspace::onRecovered);
    }

    void releasePins() {
        keyspaces.values().forEach(Keyspace::releasePins);
    }
}
