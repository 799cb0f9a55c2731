package io.kvcache.server.metrics;

import io.kvcache.transport.endpoint.EndpointStats;
import io.kvcache.transport.link.DisconnectReason;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.Locale;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;

/// Binds what the endpoint for other JVMs counts.
///
/// | meter | tags | unit |
/// |---|---|---|
/// | `kv.endpoint.connections`, `kv.endpoint.sessions` | | open now |
/// | `kv.endpoint.waiting` | | requests that wait for room, a disk or a flush |
/// | `kv.endpoint.held` | `kind` lease or reservation | of the store, now |
/// | `kv.endpoint.begun` | `kind` session, lease or reservation | ever |
/// | `kv.endpoint.expired` | `kind` session, lease or reservation | ended because the client was gone |
/// | `kv.endpoint.requests`, `kv.endpoint.refusals` | | requests |
/// | `kv.endpoint.handshakes.refused` | `reason` wrong or unseen | handshakes |
/// | `kv.endpoint.corrupt` | | payloads without their checksum |
/// | `kv.endpoint.received`, `kv.endpoint.sent` | | bytes of blocks and objects |
/// | `kv.endpoint.closed` | `reason` | connections |
public final class EndpointMetrics implements MeterBinder {

    private final Supplier<EndpointStats> stats;

    public EndpointMetrics(Supplier<EndpointStats> stats) {
        this.stats = stats;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        Meters meters = new Meters(registry, stats);
        meters.gauge("connections", Tags.empty(), EndpointStats::connections);
        meters.gauge("sessions", Tags.empty(), EndpointStats::sessions);
        meters.gauge("waiting", Tags.empty(), EndpointStats::waiting);
        meters.gauge("held", kind("lease"), all -> all.leases().open());
        meters.gauge("held", kind("reservation"), all -> all.reservations().open());
        meters.count("begun", kind("session"), EndpointStats::sessionsBegun);
        meters.count("begun", kind("lease"), all -> all.leases().granted());
        meters.count("begun", kind("reservation"), all -> all.reservations().granted());
        meters.count("expired", kind("session"), EndpointStats::sessionsExpired);
        meters.count("expired", kind("lease"), all -> all.leases().expired());
        meters.count("expired", kind("reservation"), all -> all.reservations().expired());
        meters.count("requests", Tags.empty(), EndpointStats::requests);
        meters.count("refusals", Tags.empty(), EndpointStats::refusals);
        meters.count("corrupt", Tags.empty(), EndpointStats::corrupt);
        meters.count("handshakes.refused", Tags.of("reason", "wrong"), EndpointStats::wrongProofs);
        meters.count("handshakes.refused", Tags.of("reason", "unseen"), EndpointStats::unseenProofs);
        meters.bytes("received", EndpointStats::bytesIn);
        meters.bytes("sent", EndpointStats::bytesOut);
        for (DisconnectReason reason : DisconnectReason.values()) {
            meters.count(
                    "closed",
                    Tags.of("reason", reason.name().toLowerCase(Locale.ROOT)),
                    all -> all.closed().getOrDefault(reason, 0L));
        }
    }

    private static Tags kind(String kind) {
        return Tags.of("kind", kind);
    }

    private record Meters(MeterRegistry registry, Supplier<EndpointStats> stats) {

        private static final String PREFIX = "kv.endpoint.";

        void gauge(String name, Tags tags, ToDoubleFunction<EndpointStats> of) {
            Gauge.builder(PREFIX + name, stats, all -> of.applyAsDouble(all.get()))
                    .tags(tags)
                    .register(registry);
        }

        void count(String name, Tags tags, ToDoubleFunction<EndpointStats> of) {
            FunctionCounter.builder(PREFIX + name, stats, all -> of.applyAsDouble(all.get()))
                    .tags(tags)
                    .register(registry);
        }

        void bytes(String name, ToDoubleFunction<EndpointStats> of) {
            FunctionCounter.builder(PREFIX + name, stats, all -> of.applyAsDouble(all.get()))
                    .baseUnit("bytes")
                    .register(registry);
        }
    }
}
