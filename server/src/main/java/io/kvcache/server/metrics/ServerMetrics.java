package io.kvcache.server.metrics;

import io.kvcache.server.access.PasswordAuthenticator;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceStats;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.quota.ByteBudget;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.Locale;
import java.util.Map;
import java.util.function.LongSupplier;
import java.util.function.ToLongFunction;

/// Binds what the server itself counts.
///
/// | meter | tags | unit |
/// |---|---|---|
/// | `kv.connections.open` | | connections |
/// | `kv.connections.closed` | `reason` | connections |
/// | `kv.requests` | `protocol` | requests |
/// | `kv.refusals` | `protocol` | requests that were answered by an error |
/// | `kv.dropped` | `protocol` | values without room whose client was told nothing of that |
/// | `kv.logins` | `outcome` in, wrong, elsewhere (the right password at another tenant's listener), later | log-ins |
/// | `kv.keys` | `tenant` | keys |
/// | `kv.reads` | `tenant`, `result` hit, absent (never here, as far as is known), evicted, quota, deleted, expired or
/// halved, busy (as much was being sent as may be), late (it is on disk, and did not come in time) or left (computed
/// sooner than read from
/// disk) | look-ups; EXISTS and the GET that follows it are one |
/// | `kv.flight` | `tenant`, `direction` in or out | bytes of values and blocks that are on their way now |
/// | `kv.flight.most` | `tenant`, `direction` in or out | bytes that may be |
/// | `kv.writes` | `tenant`, `outcome` stored or refused | values |
/// | `kv.promises` | `tenant`, `kind` given, bare, broken, kept or declined | answers |
/// | `kv.used` | `tenant` | bytes |
/// | `kv.quota` | `tenant` | bytes; 0 for none |
/// | `kv.sent`, `kv.received` | `tenant` | bytes of values that were found, and that were stored |
/// | `kv.evicted` | `tenant`, `cause` quota or room | values |
/// | `kv.promises.held` | `tenant` | bytes |
/// | `kv.reads.from.disk` | `tenant` | values that reads found on disk and not in memory, a part of the hits |
/// | `kv.left.to.compute` | `tenant` | values on disk that look-ups were not told of |
public final class ServerMetrics implements MeterBinder {

    private final Map<String, Keyspace> tenants;
    private final ConnectionRegistry connectionRegistry;
    private final Map<String, RequestCounters> requests;
    private final PasswordAuthenticator passwordAuthenticator;

    /// What was asked by one protocol, and how much of it was answered by an error.
    ///
    /// @param dropped values without room whose client was told nothing of that, as it cannot be
    public record RequestCounters(LongSupplier all, LongSupplier refused, LongSupplier dropped) {}

    /// @param tenants their values by name
    /// @param requests by protocol
    public ServerMetrics(
            Map<String, Keyspace> tenants,
            ConnectionRegistry connectionRegistry,
            Map<String, RequestCounters> requests,
            PasswordAuthenticator passwordAuthenticator) {
        this.passwordAuthenticator = passwordAuthenticator;
        this.tenants = Map.copyOf(tenants);
        this.connectionRegistry = connectionRegistry;
        this.requests = Map.copyOf(requests);
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        Gauge.builder("kv.connections.open", connectionRegistry, ConnectionRegistry::openCount)
                .register(registry);
        for (CloseReason reason : CloseReason.values()) {
            FunctionCounter.builder("kv.connections.closed", connectionRegistry, all -> all.closedCount(reason))
                    .tags("reason", reason.name().toLowerCase(Locale.ROOT))
                    .register(registry);
        }
        requests.forEach((protocol, counts) -> {
            count(registry, "kv.requests", "protocol", protocol, counts.all());
            count(registry, "kv.refusals", "protocol", protocol, counts.refused());
            count(registry, "kv.dropped", "protocol", protocol, counts.dropped());
        });
        count(registry, "kv.logins", "outcome", "in", passwordAuthenticator::successCount);
        count(registry, "kv.logins", "outcome", "wrong", passwordAuthenticator::deniedCount);
        count(registry, "kv.logins", "outcome", "elsewhere", passwordAuthenticator::wrongListenerCount);
        count(registry, "kv.logins", "outcome", "later", passwordAuthenticator::throttledCount);
        tenants.forEach((tenant, keyspace) -> bindTenant(registry, tenant, keyspace));
    }

    private static void count(MeterRegistry registry, String name, String tag, String value, LongSupplier of) {
        FunctionCounter.builder(name, of, LongSupplier::getAsLong)
                .tags(tag, value)
                .register(registry);
    }

    private static void bindTenant(MeterRegistry registry, String tenant, Keyspace keyspace) {
        Gauge.builder("kv.keys", keyspace, space -> space.stats().keys())
                .tags("tenant", tenant)
                .register(registry);
        Gauge.builder(
                        "kv.promises.held",
                        keyspace,
                        space -> space.stats().promises().heldBytes())
                .tags("tenant", tenant)
                .baseUnit("bytes")
                .register(registry);
        Gauge.builder("kv.used", keyspace, space -> space.stats().usage().usedBytes())
                .tags("tenant", tenant)
                .baseUnit("bytes")
                .register(registry);
        Gauge.builder("kv.quota", keyspace, space -> space.stats().usage().quotaBytes())
                .tags("tenant", tenant)
                .baseUnit("bytes")
                .register(registry);
        bindByteBudget(registry, tenant, "in", keyspace.keyspaceLimits().incoming());
        bindByteBudget(registry, tenant, "out", keyspace.keyspaceLimits().outgoing());
        bytes(registry, "kv.sent", tenant, () -> keyspace.stats().traffic().sentBytes());
        bytes(registry, "kv.received", tenant, () -> keyspace.stats().traffic().receivedBytes());
        TenantMeters tenantMeters = new TenantMeters(registry, tenant, keyspace);
        tenantMeters.add("kv.reads", "result", "hit", stats -> stats.reads().hits());
        tenantMeters.add("kv.reads", "result", "absent", stats -> stats.reads().absent());
        tenantMeters.add("kv.reads", "result", "evicted", stats -> stats.reads().evicted());
        tenantMeters.add("kv.reads", "result", "quota", stats -> stats.reads().quota());
        tenantMeters.add("kv.reads", "result", "deleted", stats -> stats.reads().deleted());
        tenantMeters.add("kv.reads", "result", "expired", stats -> stats.reads().expired());
        tenantMeters.add("kv.reads", "result", "halved", stats -> stats.reads().halved());
        tenantMeters.add("kv.reads", "result", "busy", stats -> stats.reads().busy());
        tenantMeters.add("kv.reads", "result", "late", stats -> stats.reads().late());
        tenantMeters.add("kv.reads", "result", "left", stats -> stats.reads().left());
        tenantMeters.add(
                "kv.writes", "outcome", "stored", stats -> stats.writes().stored());
        tenantMeters.add(
                "kv.writes", "outcome", "refused", stats -> stats.writes().refused());
        tenantMeters.add("kv.evicted", "cause", "quota", stats -> stats.usage().evicted());
        tenantMeters.add("kv.evicted", "cause", "room", stats -> stats.evicted());
        count(
                registry,
                "kv.reads.from.disk",
                "tenant",
                tenant,
                () -> keyspace.stats().fromDisk());
        count(
                registry,
                "kv.left.to.compute",
                "tenant",
                tenant,
                () -> keyspace.stats().cheaperComputed());
        tenantMeters.add(
                "kv.promises", "kind", "given", stats -> stats.promises().given());
        tenantMeters.add(
                "kv.promises", "kind", "bare", stats -> stats.promises().bare());
        tenantMeters.add(
                "kv.promises", "kind", "broken", stats -> stats.promises().broken());
        tenantMeters.add(
                "kv.promises", "kind", "kept", stats -> stats.promises().kept());
        tenantMeters.add(
                "kv.promises", "kind", "declined", stats -> stats.promises().declined());
    }

    private static void bindByteBudget(MeterRegistry registry, String tenant, String direction, ByteBudget flight) {
        Tags tags = Tags.of("tenant", tenant, "direction", direction);
        Gauge.builder("kv.flight", flight, ByteBudget::usedBytes)
                .tags(tags)
                .baseUnit("bytes")
                .register(registry);
        Gauge.builder("kv.flight.most", flight, ByteBudget::limitBytes)
                .tags(tags)
                .baseUnit("bytes")
                .register(registry);
    }

    private static void bytes(MeterRegistry registry, String name, String tenant, LongSupplier of) {
        FunctionCounter.builder(name, of, LongSupplier::getAsLong)
                .tags("tenant", tenant)
                .baseUnit("bytes")
                .register(registry);
    }

    /// Counters of one tenant.
    private record TenantMeters(MeterRegistry registry, String tenant, Keyspace keyspace) {
        void add(String name, String tag, String value, ToLongFunction<KeyspaceStats> of) {
            FunctionCounter.builder(name, keyspace, space -> of.applyAsLong(space.stats()))
                    .tags(Tags.of(tag, value, "tenant", tenant))
                    .register(registry);
        }
    }
}
