package io.kvcache.server.metrics;

import io.kvcache.cluster.ViewKeeper;
import io.kvcache.server.access.PasswordAuthenticator;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceStats;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.trace.TraceCapture;
import io.kvcache.server.zmq.ZmqPublisher;
import io.kvcache.transport.endpoint.EndpointStats;
import io.kvcache.transport.net.DisconnectReason;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.time.Instant;
import java.util.Locale;
import java.util.Map;
import java.util.function.DoubleSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/// Meters of the server's own counters: connections, requests, log-ins, and the values of each tenant. The static
/// methods bind meters that only some servers have. The store brings meters of its own.
///
/// @param tenants their values by name
/// @param requests by protocol
public record ServerMetrics(
        Map<String, Keyspace> tenants,
        ConnectionRegistry connectionRegistry,
        Map<String, RequestCounters> requests,
        PasswordAuthenticator passwordAuthenticator)
        implements MeterBinder {

    private static final String BYTES = "bytes";

    public ServerMetrics {
        tenants = Map.copyOf(tenants);
        requests = Map.copyOf(requests);
    }

    /// Requests of one protocol.
    ///
    /// @param refused answered by an error
    /// @param dropped values without room whose client was not told, as its protocol has no way to
    public record RequestCounters(LongSupplier all, LongSupplier refused, LongSupplier dropped) {}

    @Override
    public void bindTo(MeterRegistry registry) {
        Meters meters = Meters.of(registry);
        meters.gauge("kv.connections.open", "Open connections.", connectionRegistry::openCount);
        for (CloseReason reason : CloseReason.values()) {
            meters.with("reason", reason.name().toLowerCase(Locale.ROOT))
                    .count(
                            "kv.connections.closed",
                            "Connections that ended, by reason; bug and too_many need an operator.",
                            () -> connectionRegistry.closedCount(reason));
        }
        requests.forEach((protocol, counts) -> {
            Meters ofProtocol = meters.with("protocol", protocol);
            ofProtocol.count("kv.requests", "Requests by protocol.", counts.all::getAsLong);
            ofProtocol.count("kv.refusals", "Requests answered with an error.", counts.refused::getAsLong);
            ofProtocol.count(
                    "kv.dropped",
                    "Values dropped for want of room without an error to the client, as its protocol has none.",
                    counts.dropped::getAsLong);
        });
        countLogin(meters, "in", passwordAuthenticator::successCount);
        countLogin(meters, "wrong", passwordAuthenticator::deniedCount);
        countLogin(meters, "elsewhere", passwordAuthenticator::wrongListenerCount);
        countLogin(meters, "later", passwordAuthenticator::throttledCount);
        tenants.forEach((tenant, keyspace) -> bindTenant(meters.with("tenant", tenant), keyspace));
    }

    private static void countLogin(Meters meters, String outcome, LongSupplier of) {
        meters.with("outcome", outcome)
                .count(
                        "kv.logins",
                        "Log-ins by outcome; elsewhere: the password is of another listener's tenant; later: rejected"
                                + " unchecked, after too many wrong ones.",
                        of::getAsLong);
    }

    private static void bindTenant(Meters meters, Keyspace keyspace) {
        meters.gauge(
                "kv.keys",
                "Keys of a tenant in memory or on disk.",
                () -> keyspace.stats().keys());
        meters.gauge(
                "kv.promises.held",
                BYTES,
                "Bytes protected from eviction because EXISTS reported them as present.",
                () -> keyspace.stats().promises().heldBytes());
        meters.gauge(
                "kv.used",
                BYTES,
                "Bytes of a tenant's values, in memory or on disk.",
                () -> keyspace.stats().usage().usedBytes());
        meters.gauge(
                "kv.quota",
                BYTES,
                "Quota of a tenant in bytes; 0 for no limit.",
                () -> keyspace.stats().usage().quotaBytes());
        bindByteBudget(meters.with("direction", "in"), keyspace.keyspaceLimits().incoming());
        bindByteBudget(
                meters.with("direction", "out"), keyspace.keyspaceLimits().outgoing());
        meters.count(
                "kv.sent",
                BYTES,
                "Bytes of values read by clients.",
                () -> keyspace.stats().traffic().sentBytes());
        meters.count(
                "kv.received",
                BYTES,
                "Bytes of values stored by clients.",
                () -> keyspace.stats().traffic().receivedBytes());
        meters.count(
                "kv.reads.from.disk",
                "Values that reads found on disk and not in memory, a part of the hits.",
                () -> keyspace.stats().fromDisk());
        meters.count(
                "kv.left.to.compute",
                "Values on disk reported as misses, as they are computed sooner than read.",
                () -> keyspace.stats().cheaperComputed());
        TenantCounter reads = new TenantCounter(
                meters,
                keyspace,
                "kv.reads",
                "result",
                "Values looked up by EXISTS, GET and HEAD, by tenant and result; a GET after an EXISTS that said yes"
                        + " counts with it. The hit rate is hit of all.");
        reads.add("hit", stats -> stats.reads().hits());
        reads.add("absent", stats -> stats.reads().absent());
        reads.add("evicted", stats -> stats.reads().evicted());
        reads.add("quota", stats -> stats.reads().quota());
        reads.add("deleted", stats -> stats.reads().deleted());
        reads.add("outdated", stats -> stats.reads().outdated());
        reads.add("expired", stats -> stats.reads().expired());
        reads.add("halved", stats -> stats.reads().halved());
        reads.add("busy", stats -> stats.reads().busy());
        reads.add("late", stats -> stats.reads().late());
        reads.add("left", stats -> stats.reads().left());
        TenantCounter writes = new TenantCounter(
                meters,
                keyspace,
                "kv.writes",
                "outcome",
                "Values that clients sent to be stored, by outcome; refused: out of memory or quota; declined: chunks that"
                        + " promised less than what they would have replaced.");
        writes.add("stored", stats -> stats.writes().stored());
        writes.add("refused", stats -> stats.writes().refused());
        writes.add("declined", stats -> stats.writes().declined());
        TenantCounter evicted = new TenantCounter(
                meters,
                keyspace,
                "kv.evicted",
                "cause",
                "Evictions of a tenant's values, by cause: its quota, or room for others.");
        evicted.add("quota", stats -> stats.usage().evicted());
        evicted.add("room", KeyspaceStats::evicted);
        TenantCounter promises = new TenantCounter(
                meters,
                keyspace,
                "kv.promises",
                "kind",
                "EXISTS of stored values, by outcome; broken: gone when read; kept: read; declined: answered with no.");
        promises.add("given", stats -> stats.promises().given());
        promises.add("bare", stats -> stats.promises().bare());
        promises.add("broken", stats -> stats.promises().broken());
        promises.add("kept", stats -> stats.promises().kept());
        promises.add("declined", stats -> stats.promises().declined());
    }

    private static void bindByteBudget(Meters meters, ByteBudget flight) {
        meters.gauge("kv.flight", BYTES, "Bytes of values in transit now, in or out.", flight::usedBytes);
        meters.gauge("kv.flight.most", BYTES, "Limit on bytes of values in transit, in or out.", flight::limitBytes);
    }

    /// One counter of a tenant, by a tag.
    private record TenantCounter(Meters meters, Keyspace keyspace, String name, String tag, String help) {

        void add(String value, ToLongFunction<KeyspaceStats> of) {
            meters.with(tag, value).count(name, help, () -> of.applyAsLong(keyspace.stats()));
        }
    }

    /// Engines on the server's GPUs.
    ///
    /// @param count how many are connected
    public static MeterBinder ofEngines(DoubleSupplier count) {
        return registry -> Meters.of(registry)
                .gauge("kv.engines", "Engines of this host that are connected to the socket of a GPU.", count);
    }

    /// The cluster that the server is in.
    public static MeterBinder ofCluster(
            ViewKeeper views, LongSupplier handoverBlocks, LongSupplier copiedBlocks, LongSupplier givenValues) {
        return registry -> {
            Meters meters = Meters.of(registry);
            meters.gauge(
                    "kv.cluster.members",
                    "Servers of the cluster, as this one sees it.",
                    () -> views.view().nodes().size());
            meters.gauge(
                    "kv.cluster.epoch",
                    "Number of this server's view of the cluster.",
                    () -> views.view().epoch());
            meters.count("kv.cluster.view.changes", "Changes of the view of the cluster.", views::viewChanges);
            meters.count("kv.cluster.merges", "Times that two sides of a partition have met again.", views::mergeCount);
            meters.count(
                    "kv.cluster.flaps",
                    "Times that servers were back in the view within the failure timeout without a restart.",
                    views::flaps);
            meters.count(
                    "kv.cluster.unreadable.messages",
                    "Messages of other servers that could not be read or believed.",
                    views::unreadableMessages);
            meters.count(
                    "kv.cluster.handover.blocks",
                    "Blocks fetched from their former owners.",
                    handoverBlocks::getAsLong);
            meters.count(
                    "kv.cluster.copied.blocks",
                    "Blocks fetched as copies of what other servers own.",
                    copiedBlocks::getAsLong);
            meters.count(
                    "kv.cluster.given.values", "Values given to the servers that own them.", givenValues::getAsLong);
        };
    }

    /// What the servers of the cluster have dropped.
    public static MeterBinder ofDrops(DoubleSupplier known, DoubleSupplier applied) {
        return registry -> {
            Meters meters = Meters.of(registry);
            meters.gauge("kv.cluster.drops", "Drops that the servers of the cluster remember.", known);
            meters.count(
                    "kv.cluster.drops.applied",
                    "Drops that this server has heard of from other servers, and applied.",
                    applied);
        };
    }

    /// What this server has passed on for its clients to the servers that own their keys.
    public static MeterBinder ofForwarding(DoubleSupplier answered, DoubleSupplier unanswered) {
        return registry -> {
            Meters meters = Meters.of(registry);
            meters.count(
                    "kv.cluster.forwarded",
                    "Requests about values that this server has passed on to the server that owns the key.",
                    answered);
            meters.count(
                    "kv.cluster.forward.failures",
                    "Requests about values whose owner did not answer: reads that found nothing, writes that were"
                            + " refused or kept here.",
                    unanswered);
        };
    }

    /// When certificates expire.
    ///
    /// @param expiries by the setting that names the certificate, as in `listeners.0.tls`
    public static MeterBinder ofCertificates(Map<String, Supplier<Instant>> expiries) {
        return registry -> expiries.forEach((setting, expiry) -> Meters.of(registry)
                .with("setting", setting)
                .gauge(
                        "kv.tls.certificate.expiry",
                        "seconds",
                        "When the certificate of a listener expires, in seconds since 1970; of a chain, the first to"
                                + " expire.",
                        () -> expiry.get().getEpochSecond()));
    }

    /// Returns the meters of events that are published over ZeroMQ.
    ///
    /// @param publisher null in it before there is one
    public static MeterBinder ofPublisher(Supplier<@Nullable ZmqPublisher> publisher) {
        return registry -> {
            Meters meters = Meters.of(registry);
            String asked = "Requests to the replay socket that were answered.";
            meters.count(
                    "kv.events.published",
                    "Messages that were published over ZeroMQ.",
                    () -> read(publisher, ZmqPublisher::publishedCount));
            meters.with("kind", "replay")
                    .count("kv.events.asked", asked, () -> read(publisher, ZmqPublisher::replayCount));
            meters.with("kind", "snapshot")
                    .count("kv.events.asked", asked, () -> read(publisher, ZmqPublisher::snapshotCount));
            meters.count(
                    "kv.events.overrun",
                    "Times that events arrived faster than they could be published.",
                    () -> read(publisher, ZmqPublisher::overrunCount));
        };
    }

    /// The trace, where there is one.
    ///
    /// @param trace null in it where there is none
    public static MeterBinder ofTrace(Supplier<TraceCapture.@Nullable Stats> trace) {
        return registry -> {
            if (trace.get() == null) {
                return;
            }
            Meters meters = Meters.of(registry);
            meters.gauge(
                    "kv.trace.capturing",
                    "1 while the trace is written, 0 when its file is full or cannot be written.",
                    () -> read(trace, stats -> stats.capturing() ? 1 : 0));
            meters.count(
                    "kv.trace.uses", "Accesses written to the trace.", () -> read(trace, TraceCapture.Stats::uses));
            meters.count(
                    "kv.trace.written", BYTES, "Bytes of the trace.", () -> read(trace, TraceCapture.Stats::bytes));
            meters.count(
                    "kv.trace.dropped",
                    "Accesses left out of the trace, as they came faster than it could be written.",
                    () -> read(trace, TraceCapture.Stats::dropped));
        };
    }

    private static <T> long read(Supplier<@Nullable T> from, ToLongFunction<T> of) {
        T now = from.get();
        return now == null ? 0 : of.applyAsLong(now);
    }

    /// The endpoint for other JVMs.
    public static MeterBinder ofEndpoint(Supplier<EndpointStats> stats) {
        return registry -> {
            EndpointMeters meters = new EndpointMeters(Meters.of(registry), stats);
            meters.gauge("connections", "Open connections of other JVMs.", EndpointStats::connections);
            meters.gauge("sessions", "Open sessions of other JVMs.", EndpointStats::sessions);
            meters.gauge(
                    "waiting", "Requests of other JVMs that wait for room, a disk or a flush.", EndpointStats::waiting);
            String held = "Leases and reservations that other JVMs hold of the store.";
            meters.with("kind", "lease").gauge("held", held, all -> all.leases().open());
            meters.with("kind", "reservation")
                    .gauge("held", held, all -> all.reservations().open());
            String begun = "Sessions, leases and reservations of other JVMs, ever.";
            meters.with("kind", "session").count("begun", begun, EndpointStats::sessionsBegun);
            meters.with("kind", "lease")
                    .count("begun", begun, all -> all.leases().granted());
            meters.with("kind", "reservation")
                    .count("begun", begun, all -> all.reservations().granted());
            String expired = "Sessions, leases and reservations that ended as their client was gone.";
            meters.with("kind", "session").count("expired", expired, EndpointStats::sessionsExpired);
            meters.with("kind", "lease")
                    .count("expired", expired, all -> all.leases().expired());
            meters.with("kind", "reservation")
                    .count("expired", expired, all -> all.reservations().expired());
            meters.count("requests", "Requests of other JVMs.", EndpointStats::requests);
            meters.count("refusals", "Requests of other JVMs answered with an error.", EndpointStats::refusals);
            meters.count("corrupt", "Payloads of other JVMs without a matching checksum.", EndpointStats::corrupt);
            String refused = "Other JVMs rejected in the handshake, by reason.";
            meters.with("reason", "wrong").count("handshakes.refused", refused, EndpointStats::wrongProofs);
            meters.with("reason", "unseen").count("handshakes.refused", refused, EndpointStats::unseenProofs);
            meters.bytes("received", "Bytes of blocks and objects that other JVMs sent.", EndpointStats::bytesIn);
            meters.bytes(
                    "staged",
                    "Bytes of blocks and objects copied out of memory that clients on this host share.",
                    EndpointStats::bytesStaged);
            meters.bytes(
                    "sent",
                    "Bytes of blocks and objects sent to other JVMs, or copied into memory that clients share.",
                    EndpointStats::bytesOut);
            meters.bytes(
                    "saved",
                    "Bytes of blocks that coding kept off the network to other JVMs.",
                    EndpointStats::bytesSaved);
            for (DisconnectReason reason : DisconnectReason.values()) {
                meters.with("reason", reason.name().toLowerCase(Locale.ROOT))
                        .count(
                                "closed",
                                "Connections of other JVMs that ended, by reason.",
                                all -> all.closed().getOrDefault(reason, 0L));
            }
        };
    }

    private record EndpointMeters(Meters meters, Supplier<EndpointStats> stats) {

        private static final String PREFIX = "kv.endpoint.";

        EndpointMeters with(String tag, String value) {
            return new EndpointMeters(meters.with(tag, value), stats);
        }

        void gauge(String name, String help, ToLongFunction<EndpointStats> of) {
            meters.gauge(PREFIX + name, help, () -> of.applyAsLong(stats.get()));
        }

        void count(String name, String help, ToLongFunction<EndpointStats> of) {
            meters.count(PREFIX + name, help, () -> of.applyAsLong(stats.get()));
        }

        void bytes(String name, String help, ToLongFunction<EndpointStats> of) {
            meters.count(PREFIX + name, BYTES, help, () -> of.applyAsLong(stats.get()));
        }
    }
}
