package io.kvcache.server;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.spi.Clock;
import io.kvcache.server.access.SecretFile;
import io.kvcache.server.config.DiskTierConfig;
import io.kvcache.server.config.RecomputeConfig;
import io.kvcache.server.config.RequestLimits;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TenantConfig.KeyOwnershipConfig;
import io.kvcache.server.config.TenantConfig.ValueKind;
import io.kvcache.server.keyspace.HashSlotOwnership;
import io.kvcache.server.keyspace.KeyOwnershipRules;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceOptions;
import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import io.kvcache.server.keyspace.KeyspaceOptions.RecomputeEstimator;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.miss.MissCauses;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.miss.MissLog.Reason;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.EndpointListener;
import io.kvcache.transport.wire.MessageType;
import java.io.IOException;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The values of all tenants, each in a keyspace and a namespace of its own: the same key of two of them is
/// two keys to the store, and nothing here goes from one to the other.
final class TenantKeyspaces {

    private final Map<String, Keyspace> keyspaces;
    private final KeyOwnershipLoader labels;

    private TenantKeyspaces(Map<String, Keyspace> keyspaces, KeyOwnershipLoader labels) {
        this.keyspaces = Collections.unmodifiableMap(keyspaces);
        this.labels = labels;
    }

    /// @param slotOwnership null for a server in no cluster
    /// @throws IOException when a file of salts cannot be used
    static TenantKeyspaces open(
            TieredKvCache cache, Clock clock, ServerConfig config, @Nullable HashSlotOwnership slotOwnership)
            throws IOException {
        KeyOwnershipLoader labels = KeyOwnershipLoader.open(config.access().tenants());
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
                Reason reason = late ? Reason.LATE : causes.causeOf(digest);
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
                ? new KeyspaceRouter(own, keyspaces, labels.rules())
                : KeyspaceRouter.of(own);
    }

    /// How keys of the default tenant's clients name other tenants.
    KeyOwnershipLoader ownership() {
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

    /// How keys name tenants, as the configuration and its files of salts say at the moment.
    ///
    /// **Threads.** Any; one at a time reloads.
    static final class KeyOwnershipLoader {

        private final List<TenantConfig> tenants;
        private final AtomicReference<KeyOwnershipRules> rules;

        private KeyOwnershipLoader(List<TenantConfig> tenants, KeyOwnershipRules keyOwnershipRules) {
            this.tenants = tenants;
            rules = new AtomicReference<>(keyOwnershipRules);
        }

        /// Reads the files of salts.
        ///
        /// @throws IOException when one cannot be used; the message says which and why, never a salt
        static KeyOwnershipLoader open(List<TenantConfig> tenants) throws IOException {
            return new KeyOwnershipLoader(List.copyOf(tenants), read(tenants));
        }

        /// Asks for the rules as of now.
        Supplier<KeyOwnershipRules> rules() {
            return rules::get;
        }

        /// Reads the files of salts again.
        ///
        /// @throws IOException when one cannot be used; the salts from before stay
        void reload() throws IOException {
            rules.set(read(tenants));
        }

        List<Path> files() {
            return tenants.stream()
                    .map(tenant -> tenant.keyOwnership().saltFile())
                    .filter(Objects::nonNull)
                    .map(Path::of)
                    .toList();
        }

        private static KeyOwnershipRules read(List<TenantConfig> tenants) throws IOException {
            Map<String, String> prefixes = new HashMap<>();
            Map<String, String> salts = new HashMap<>();
            for (TenantConfig tenant : tenants) {
                tenant.keyOwnership().prefixes().forEach(prefix -> prefixes.put(prefix, tenant.name()));
                for (String salt : salts(tenant)) {
                    String other = salts.put(salt, tenant.name());
                    if (other != null && !other.equals(tenant.name())) {
                        throw new IOException("tenants " + other + " and " + tenant.name()
                                + " have a salt in common; each takes salts of its own");
                    }
                }
            }
            return KeyOwnershipRules.of(prefixes, salts);
        }

        private static List<String> salts(TenantConfig tenant) throws IOException {
            List<String> all = new ArrayList<>(tenant.keyOwnership().salts());
            String file = tenant.keyOwnership().saltFile();
            if (file != null) {
                String setting = tenant.path() + ".salt_file";
                for (String line : SecretFile.readLines(setting, file, "salt")) {
                    if (!KeyOwnershipConfig.isSalt(line.strip())) {
                        throw new IOException(setting + " " + file + " has a line that is not a salt; "
                                + KeyOwnershipConfig.SALT_RULES);
                    }
                    all.add(line.strip());
                }
            }
            return all;
        }
    }
}
