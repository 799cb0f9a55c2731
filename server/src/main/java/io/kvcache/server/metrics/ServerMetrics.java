package io.kvcache.server.metrics;

import com.sun.management.OperatingSystemMXBean;
import io.kvcache.cluster.ViewKeeper;
import io.kvcache.server.access.PasswordAuthenticator;
import io.kvcache.server.cluster.ClusterMember;
import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceStats;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.trace.TraceCapture;
import io.kvcache.server.zmq.ZmqPublisher;
import io.kvcache.tiers.metrics.Meters;
import io.kvcache.transport.endpoint.EndpointStats;
import io.kvcache.transport.net.DisconnectReason;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.FileDescriptorMetrics;
import io.micrometer.core.instrument.binder.system.UptimeMetrics;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.time.Instant;
import java.util.Locale;
import java.util.Map;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;
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
        Meters<ConnectionRegistry> connections = meters(registry, connectionRegistry);
        connections.gauge("kv.connections.open", "Open connections.", ConnectionRegistry::openCount);
        Meters.Counts<ConnectionRegistry> closed = connections.counts(
                "kv.connections.closed",
                null,
                "Connections that ended, by reason; bug and too_many need an operator.",
                "reason");
        for (CloseReason reason : CloseReason.values()) {
            closed.add(reason.name().toLowerCase(Locale.ROOT), all -> all.closedCount(reason));
        }
        requests.forEach((protocol, counts) -> {
            Meters<RequestCounters> ofProtocol = meters(registry, counts).with("protocol", protocol);
            ofProtocol.count("kv.requests", "Requests by protocol.", each -> each.all.getAsLong());
            ofProtocol.count("kv.refusals", "Requests answered with an error.", each -> each.refused.getAsLong());
            ofProtocol.count(
                    "kv.dropped",
                    "Values dropped for want of room without an error to the client, as its protocol has none.",
                    each -> each.dropped.getAsLong());
        });
        meters(registry, passwordAuthenticator)
                .counts(
                        "kv.logins",
                        null,
                        "Log-ins by outcome; elsewhere: the password is of another listener's tenant; later: rejected"
                                + " unchecked, after too many wrong ones.",
                        "outcome")
                .add("in", PasswordAuthenticator::successCount)
                .add("wrong", PasswordAuthenticator::deniedCount)
                .add("elsewhere", PasswordAuthenticator::wrongListenerCount)
                .add("later", PasswordAuthenticator::throttledCount);
        tenants.forEach(
                (tenant, keyspace) -> bindTenant(meters(registry, keyspace).with("tenant", tenant)));
    }

    private static <S> Meters<S> meters(MeterRegistry registry, S source) {
        return new Meters<>(registry, Tags.empty(), () -> source);
    }

    private static void bindTenant(Meters<Keyspace> meters) {
        Meters<KeyspaceStats> stats = meters.of(Keyspace::stats);
        stats.gauge("kv.keys", "Keys of a tenant in memory or on disk.", KeyspaceStats::keys);
        stats.gauge(
                "kv.promises.held",
                BYTES,
                "Bytes protected from eviction because EXISTS reported them as present.",
                all -> all.promises().heldBytes());
        Meters<KeyspaceStats.Usage> usage = stats.of(KeyspaceStats::usage);
        usage.gauge(
                "kv.used", BYTES, "Bytes of a tenant's values, in memory or on disk.", KeyspaceStats.Usage::usedBytes);
        usage.gauge("kv.quota", BYTES, "Quota of a tenant in bytes; 0 for no limit.", KeyspaceStats.Usage::quotaBytes);
        bindByteBudget(
                meters.with("direction", "in").of(all -> all.keyspaceLimits().incoming()));
        bindByteBudget(
                meters.with("direction", "out").of(all -> all.keyspaceLimits().outgoing()));
        stats.count(
                "kv.sent",
                BYTES,
                "Bytes of values read by clients.",
                all -> all.traffic().sentBytes());
        stats.count(
                "kv.received",
                BYTES,
                "Bytes of values stored by clients.",
                all -> all.traffic().receivedBytes());
        stats.count(
                "kv.reads.from.disk",
                "Values that reads found on disk and not in memory, a part of the hits.",
                KeyspaceStats::fromDisk);
        stats.count(
                "kv.left.to.compute",
                "Values on disk reported as misses, as they are computed sooner than read.",
                KeyspaceStats::cheaperComputed);
        bindOutcomes(stats);
    }

    private static void bindOutcomes(Meters<KeyspaceStats> stats) {
        Meters.Counts<KeyspaceStats.Reads> reads = stats.of(KeyspaceStats::reads)
                .counts(
                        "kv.reads",
                        null,
                        "Values looked up by EXISTS, GET and HEAD, by tenant and result; a GET after an EXISTS that"
                                + " said yes counts with it. The hit rate is hit of all.",
                        "result")
                .add("hit", KeyspaceStats.Reads::hits);
        for (MissLog.Reason reason : MissLog.Reason.values()) {
            reads.add(reason.label(), all -> all.of(reason));
        }
        stats.of(KeyspaceStats::writes)
                .counts(
                        "kv.writes",
                        null,
                        "Values that clients sent to be stored, by outcome; refused: out of memory or quota; declined:"
                                + " chunks that promised less than what they would have replaced.",
                        "outcome")
                .add("stored", KeyspaceStats.Writes::stored)
                .add("refused", KeyspaceStats.Writes::refused)
                .add("declined", KeyspaceStats.Writes::declined);
        stats.counts(
                        "kv.evicted",
                        null,
                        "Evictions of a tenant's values, by cause: its quota, or room for others.",
                        "cause")
                .add("quota", all -> all.usage().evicted())
                .add("room", KeyspaceStats::evicted);
        stats.of(KeyspaceStats::promises)
                .counts(
                        "kv.promises",
                        null,
                        "EXISTS of stored values, by outcome; broken: gone when read; kept: read; declined: answered"
                                + " with no.",
                        "kind")
                .add("given", KeyspaceStats.ExistsPinCounts::given)
                .add("bare", KeyspaceStats.ExistsPinCounts::bare)
                .add("broken", KeyspaceStats.ExistsPinCounts::broken)
                .add("kept", KeyspaceStats.ExistsPinCounts::kept)
                .add("declined", KeyspaceStats.ExistsPinCounts::declined);
    }

    private static void bindByteBudget(Meters<ByteBudget> meters) {
        meters.gauge("kv.flight", BYTES, "Bytes of values in transit now, in or out.", ByteBudget::usedBytes);
        meters.gauge(
                "kv.flight.most", BYTES, "Limit on bytes of values in transit, in or out.", ByteBudget::limitBytes);
    }

    /// Engines on the server's GPUs.
    ///
    /// @param count how many are connected
    public static MeterBinder ofEngines(LongSupplier count) {
        return registry -> meters(registry, count)
                .gauge(
                        "kv.engines",
                        "Engines of this host that are connected to the socket of a GPU.",
                        LongSupplier::getAsLong);
    }

    /// The tier in a GPU's memory.
    ///
    /// @param device number of the GPU
    /// @param bytes that it has now
    public static MeterBinder ofGpu(int device, LongSupplier bytes) {
        return registry -> meters(registry, bytes)
                .with("gpu", Integer.toString(device))
                .gauge(
                        "kv.gpu.capacity",
                        BYTES,
                        "Memory of the GPU that the server has for blocks now; 0 while the GPU is out.",
                        LongSupplier::getAsLong);
    }

    /// The cluster that the server is in.
    public static MeterBinder ofCluster(ClusterMember member) {
        return registry -> {
            Meters<ClusterMember> meters = meters(registry, member);
            Meters<ViewKeeper> views = meters.of(ClusterMember::views);
            views.gauge(
                    "kv.cluster.members",
                    "Servers of the cluster, as this one sees it.",
                    all -> all.view().nodes().size());
            views.gauge(
                    "kv.cluster.epoch",
                    "Number of this server's view of the cluster.",
                    all -> all.view().epoch());
            views.count("kv.cluster.view.changes", "Changes of the view of the cluster.", ViewKeeper::viewChanges);
            views.count(
                    "kv.cluster.merges", "Times that two sides of a partition have met again.", ViewKeeper::mergeCount);
            views.count(
                    "kv.cluster.flaps",
                    "Times that servers were back in the view within the failure timeout without a restart.",
                    ViewKeeper::flaps);
            views.count(
                    "kv.cluster.unreadable.messages",
                    "Messages of other servers that could not be read or believed.",
                    ViewKeeper::unreadableMessages);
            meters.count(
                    "kv.cluster.handover.blocks",
                    "Blocks fetched from their former owners.",
                    ClusterMember::handoverBlocks);
            meters.count(
                    "kv.cluster.copied.blocks",
                    "Blocks fetched as copies of what other servers own.",
                    ClusterMember::copiedBlocks);
            meters.count(
                    "kv.cluster.given.values",
                    "Values given to the servers that own them.",
                    ClusterMember::givenValues);
            meters.gauge(
                    "kv.cluster.drops", "Drops that the servers of the cluster remember.", ClusterMember::dropCount);
            meters.count(
                    "kv.cluster.drops.applied",
                    "Drops that this server has heard of from other servers, and applied.",
                    ClusterMember::appliedDropCount);
        };
    }

    /// What this server has passed on for its clients to the servers that own their keys.
    public static MeterBinder ofForwarding(RequestForwarder forwarder) {
        return registry -> {
            Meters<RequestForwarder> meters = meters(registry, forwarder);
            meters.count(
                    "kv.cluster.forwarded",
                    "Requests about values that this server has passed on to the server that owns the key.",
                    RequestForwarder::forwardedCount);
            meters.count(
                    "kv.cluster.forward.failures",
                    "Requests about values whose owner did not answer: reads that found nothing, writes that were"
                            + " refused or kept here.",
                    RequestForwarder::unansweredCount);
        };
    }

    /// When certificates expire.
    ///
    /// @param expiries by the setting that names the certificate, as in `listeners.0.tls`
    public static MeterBinder ofCertificates(Map<String, Supplier<Instant>> expiries) {
        return registry -> expiries.forEach((setting, expiry) -> meters(registry, expiry)
                .with("setting", setting)
                .gauge(
                        "kv.tls.certificate.expiry",
                        "seconds",
                        "When the certificate of a listener expires, in seconds since 1970; of a chain, the first to"
                                + " expire.",
                        at -> at.get().getEpochSecond()));
    }

    /// Returns the meters of events that are published over ZeroMQ.
    ///
    /// @param publisher null in it before there is one
    public static MeterBinder ofPublisher(Supplier<@Nullable ZmqPublisher> publisher) {
        return registry -> {
            Meters<@Nullable ZmqPublisher> meters = new Meters<>(registry, Tags.empty(), publisher);
            meters.count(
                    "kv.events.published",
                    "Messages that were published over ZeroMQ.",
                    orZero(ZmqPublisher::publishedCount));
            meters.counts("kv.events.asked", null, "Requests to the replay socket that were answered.", "kind")
                    .add("replay", orZero(ZmqPublisher::replayCount))
                    .add("snapshot", orZero(ZmqPublisher::snapshotCount));
            meters.count(
                    "kv.events.overrun",
                    "Times that events arrived faster than they could be published.",
                    orZero(ZmqPublisher::overrunCount));
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
            Meters<TraceCapture.@Nullable Stats> meters = new Meters<>(registry, Tags.empty(), trace);
            meters.gauge(
                    "kv.trace.capturing",
                    "1 while the trace is written, 0 when its file is full or cannot be written.",
                    orZero(stats -> stats.capturing() ? 1 : 0));
            meters.count("kv.trace.uses", "Accesses written to the trace.", orZero(TraceCapture.Stats::uses));
            meters.count("kv.trace.written", BYTES, "Bytes of the trace.", orZero(TraceCapture.Stats::bytes));
            meters.count(
                    "kv.trace.dropped",
                    "Accesses left out of the trace, as they came faster than it could be written.",
                    orZero(TraceCapture.Stats::dropped));
        };
    }

    private static <T> ToDoubleFunction<@Nullable T> orZero(ToDoubleFunction<T> of) {
        return source -> source == null ? 0 : of.applyAsDouble(source);
    }

    /// The endpoint for other JVMs.
    public static MeterBinder ofEndpoint(Supplier<EndpointStats> stats) {
        return registry -> {
            Meters<EndpointStats> meters = new Meters<>(registry, Tags.empty(), stats);
            meters.gauge("kv.endpoint.connections", "Open connections of other JVMs.", EndpointStats::connections);
            meters.gauge("kv.endpoint.sessions", "Open sessions of other JVMs.", EndpointStats::sessions);
            meters.gauge(
                    "kv.endpoint.waiting",
                    "Requests of other JVMs that wait for room, a disk or a flush.",
                    EndpointStats::waiting);
            String held = "Leases and reservations that other JVMs hold of the store.";
            meters.with("kind", "lease")
                    .gauge("kv.endpoint.held", held, all -> all.leases().open());
            meters.with("kind", "reservation")
                    .gauge("kv.endpoint.held", held, all -> all.reservations().open());
            meters.counts("kv.endpoint.begun", null, "Sessions, leases and reservations of other JVMs, ever.", "kind")
                    .add("session", EndpointStats::sessionsBegun)
                    .add("lease", all -> all.leases().granted())
                    .add("reservation", all -> all.reservations().granted());
            meters.counts(
                            "kv.endpoint.expired",
                            null,
                            "Sessions, leases and reservations that ended as their client was gone.",
                            "kind")
                    .add("session", EndpointStats::sessionsExpired)
                    .add("lease", all -> all.leases().expired())
                    .add("reservation", all -> all.reservations().expired());
            meters.count("kv.endpoint.requests", "Requests of other JVMs.", EndpointStats::requests);
            meters.count(
                    "kv.endpoint.refusals", "Requests of other JVMs answered with an error.", EndpointStats::refusals);
            meters.count(
                    "kv.endpoint.corrupt",
                    "Payloads of other JVMs without a matching checksum.",
                    EndpointStats::corrupt);
            meters.counts(
                            "kv.endpoint.handshakes.refused",
                            null,
                            "Other JVMs rejected in the handshake, by reason.",
                            "reason")
                    .add("wrong", EndpointStats::wrongProofs)
                    .add("unseen", EndpointStats::unseenProofs);
            meters.count(
                    "kv.endpoint.received",
                    BYTES,
                    "Bytes of blocks and objects that other JVMs sent.",
                    EndpointStats::bytesIn);
            meters.count(
                    "kv.endpoint.staged",
                    BYTES,
                    "Bytes of blocks and objects copied out of memory that clients on this host share.",
                    EndpointStats::bytesStaged);
            meters.count(
                    "kv.endpoint.sent",
                    BYTES,
                    "Bytes of blocks and objects sent to other JVMs, or copied into memory that clients share.",
                    EndpointStats::bytesOut);
            meters.count(
                    "kv.endpoint.saved",
                    BYTES,
                    "Bytes of blocks that coding kept off the network to other JVMs.",
                    EndpointStats::bytesSaved);
            Meters.Counts<EndpointStats> closed = meters.counts(
                    "kv.endpoint.closed", null, "Connections of other JVMs that ended, by reason.", "reason");
            for (DisconnectReason reason : DisconnectReason.values()) {
                closed.add(
                        reason.name().toLowerCase(Locale.ROOT),
                        all -> all.closed().getOrDefault(reason, 0L));
            }
        };
    }

    /// Meters of the process: which version, since when, how busy, how full, and whether it stood still.
    /// Micrometer's own, but for those of the processor, whose names Prometheus' rules do not allow.
    ///
    /// Those of the collectors are read when asked for; Micrometer's meters of the collectors would listen to each
    /// collection.
    public static final class ProcessMetrics implements MeterBinder {

        private static final double MILLIS = 1000;
        private static final double NANOS = 1e9;

        private final String version;

        public ProcessMetrics(String version) {
            this.version = version;
        }

        @Override
        public void bindTo(MeterRegistry registry) {
            new JvmMemoryMetrics().bindTo(registry);
            new JvmThreadMetrics().bindTo(registry);
            new FileDescriptorMetrics().bindTo(registry);
            new UptimeMetrics().bindTo(registry);
            Meters<String> ofVersion = new Meters<>(registry, Tags.of("version", version), () -> version);
            ofVersion.gauge("kv.version", "Always 1; the version is in its label.", _ -> 1);
            for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
                Meters<GarbageCollectorMXBean> ofCollector =
                        new Meters<>(registry, Tags.of("gc", collector.getName()), () -> collector);
                ofCollector.count(
                        "jvm.gc.collections", "Garbage collections.", GarbageCollectorMXBean::getCollectionCount);
                ofCollector.count(
                        "jvm.gc.seconds",
                        "Seconds spent in garbage collections.",
                        of -> of.getCollectionTime() / MILLIS);
            }
            if (ManagementFactory.getOperatingSystemMXBean() instanceof OperatingSystemMXBean system) {
                bindProcessor(new Meters<>(registry, Tags.empty(), () -> system));
            }
        }

        private static void bindProcessor(Meters<OperatingSystemMXBean> meters) {
            meters.count(
                    "process.cpu",
                    "seconds",
                    "Seconds of processor time used by the process.",
                    system -> system.getProcessCpuTime() / NANOS);
            meters.gauge(
                    "process.cpu.usage",
                    "Processor load of the process, 0 to 1.",
                    system -> Math.max(0, system.getProcessCpuLoad()));
            meters.gauge(
                    "system.cpu.usage",
                    "Processor load of the machine, 0 to 1.",
                    system -> Math.max(0, system.getCpuLoad()));
            meters.gauge(
                    "system.cpus",
                    "Processors available to the process.",
                    OperatingSystemMXBean::getAvailableProcessors);
            meters.gauge(
                    "system.load.average.1m",
                    "Load average of the machine over one minute.",
                    OperatingSystemMXBean::getSystemLoadAverage);
        }
    }
}
