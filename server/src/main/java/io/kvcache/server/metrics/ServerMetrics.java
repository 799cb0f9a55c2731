package io.kvcache.server.metrics;

import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceStats;
import io.kvcache.server.net.CloseReason;
import io.kvcache.server.net.Connections;
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
/// | `kv.keys` | | keys |
/// | `kv.reads` | `result` hit, absent, expired or halved | values |
/// | `kv.writes` | `outcome` stored, joined or refused | values |
/// | `kv.promises` | `kind` given, bare or broken | answers |
/// | `kv.promises.held` | | bytes |
public final class ServerMetrics implements MeterBinder {

    private final Keyspace keyspace;
    private final Connections connections;
    private final Map<String, LongSupplier> requests;

    /// @param requests by protocol
    public ServerMetrics(Keyspace keyspace, Connections connections, Map<String, LongSupplier> requests) {
        this.keyspace = keyspace;
        this.connections = connections;
        this.requests = Map.copyOf(requests);
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        Gauge.builder("kv.connections.open", connections, Connections::openCount)
                .register(registry);
        for (CloseReason reason : CloseReason.values()) {
            FunctionCounter.builder("kv.connections.closed", connections, all -> all.closedCount(reason))
                    .tags("reason", reason.name().toLowerCase(Locale.ROOT))
                    .register(registry);
        }
        requests.forEach((protocol, count) -> FunctionCounter.builder("kv.requests", count, LongSupplier::getAsLong)
                .tags("protocol", protocol)
                .register(registry));
        Gauge.builder("kv.keys", keyspace, space -> space.stats().keys()).register(registry);
        Gauge.builder(
                        "kv.promises.held",
                        keyspace,
                        space -> space.stats().promises().heldBytes())
                .baseUnit("bytes")
                .register(registry);
        count(registry, "kv.reads", "result", "hit", stats -> stats.reads().hits());
        count(registry, "kv.reads", "result", "absent", stats -> stats.reads().absent());
        count(registry, "kv.reads", "result", "expired", stats -> stats.reads().expired());
        count(registry, "kv.reads", "result", "halved", stats -> stats.reads().halved());
        count(
                registry,
                "kv.writes",
                "outcome",
                "stored",
                stats -> stats.writes().stored());
        count(
                registry,
                "kv.writes",
                "outcome",
                "joined",
                stats -> stats.writes().joined());
        count(
                registry,
                "kv.writes",
                "outcome",
                "refused",
                stats -> stats.writes().refused());
        count(
                registry,
                "kv.promises",
                "kind",
                "given",
                stats -> stats.promises().given());
        count(registry, "kv.promises", "kind", "bare", stats -> stats.promises().bare());
        count(
                registry,
                "kv.promises",
                "kind",
                "broken",
                stats -> stats.promises().broken());
    }

    private void count(
            MeterRegistry registry, String name, String tag, String value, ToLongFunction<KeyspaceStats> of) {
        FunctionCounter.builder(name, keyspace, space -> of.applyAsLong(space.stats()))
                .tags(Tags.of(tag, value))
                .register(registry);
    }
}
