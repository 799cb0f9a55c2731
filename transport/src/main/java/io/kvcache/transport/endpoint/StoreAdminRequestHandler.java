package io.kvcache.transport.endpoint;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.EventCodec;
import io.kvcache.transport.wire.NamespaceCodec;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.StatsCodec;
import io.kvcache.transport.wire.Status;
import java.time.Duration;
import java.util.List;

/// Requests about namespaces and the store as a whole.
final class StoreAdminRequestHandler {

    /// Half a MiB of events in one reply.
    private static final int MAX_EVENTS = 8192;

    /// The operator's own: the one tenant that may do what concerns all of them.
    private static final String DEFAULT_TENANT = "default";

    private final EndpointContext endpointContext;
    private final ClientSession session;

    StoreAdminRequestHandler(EndpointContext endpointContext, ClientSession session) {
        this.endpointContext = endpointContext;
        this.session = session;
    }

    /// A namespace → `u32 number`, and where memory is shared `u32` that its records have
    RequestDispatcher.RequestAction register(EndpointRequest request, BodyReader body) throws ProtocolException {
        Namespace namespace = namespace(body);
        return () -> {
            String only = session.onlyTenant();
            if (only != null && !only.equals(namespace.tenant())) {
                throw new RequestException(
                        Status.FORBIDDEN,
                        "tenant = \"%s\" of %s; allowed: \"%s\"".formatted(namespace.tenant(), namespace, only));
            }
            String refusal = endpointContext.options().namespaces().rejectionReason(namespace);
            if (refusal != null) {
                throw new RequestException(Status.FORBIDDEN, refusal);
            }
            endpointContext.cache().register(namespace);
            int number = session.registerNamespace(namespace);
            if (number == 0) {
                throw new RequestException(
                        Status.BUSY,
                        "%d namespaces are registered; allowed: %1$d".formatted(ClientSession.MAX_NAMESPACES));
            }
            BodyWriter reply = new BodyWriter().i32(number);
            SharedMemory memory = endpointContext.sharedMemory();
            request.reply(memory == null ? reply : reply.i32(memory.namespaceId(namespace)));
        };
    }

    private static Namespace namespace(BodyReader body) throws ProtocolException {
        try {
            return NamespaceCodec.read(body);
        } catch (IllegalArgumentException impossible) {
            throw new ProtocolException(String.valueOf(impossible.getMessage()));
        }
    }

    /// `u32 namespace` → `u64 blocks and objects`
    RequestDispatcher.RequestAction drop(EndpointRequest request, BodyReader body) throws ProtocolException {
        Namespace namespace = ObjectRequestHandler.namespace(session, body);
        return () -> request.reply(new BodyWriter().i64(endpointContext.cache().drop(namespace)));
    }

    /// → see [StatsCodec]
    RequestDispatcher.RequestAction stats(EndpointRequest request) {
        return () -> {
            BodyWriter reply = new BodyWriter(1024);
            StatsCodec.write(
                    endpointContext.cache().stats(), session.namespaceNumbers().numbers(), reply);
            request.reply(reply);
        };
    }

    /// `u64 sequence, u32 most` → `u64 next, u8 lost, 3 × 0, u32 events`, and these
    RequestDispatcher.RequestAction events(EndpointRequest request, BodyReader body) throws ProtocolException {
        long sequence = body.i64("sequence");
        int most = body.count("most");
        return () -> {
            requireAllTenants();
            EventBatch batch = endpointContext.cache().events().since(sequence, Math.min(most, MAX_EVENTS));
            List<CacheEvent> events = batch.events();
            BodyWriter reply = new BodyWriter(16 + EventCodec.BYTES * events.size());
            reply.i64(batch.nextSequence())
                    .u8(batch.hasGap() ? 1 : 0)
                    .u8(0)
                    .u16(0)
                    .i32(events.size());
            events.forEach(event -> EventCodec.write(event, reply));
            request.reply(reply);
        };
    }

    /// Events and snapshots name the blocks of all tenants.
    private void requireAllTenants() throws RequestException {
        if (session.onlyTenant() != null) {
            throw new RequestException(Status.FORBIDDEN, "events tell of all tenants; allowed: who may speak for all");
        }
    }

    /// `u64 snapshot (0: take one), u32 first, u32 0` → `u64 snapshot, u64 next, u32 stored, u32
    /// namespaces, u32 events, u32 0`, for each namespace that the session has registered `u32 number in
    /// events, u32 number of the session`, and events from the first on.
    RequestDispatcher.RequestAction snapshot(EndpointRequest request, BodyReader body) throws ProtocolException {
        long number = body.i64("snapshot");
        int first = body.count("first");
        return () -> {
            requireAllTenants();
            if (number != 0) {
                StoreSnapshot kept = endpointContext.shared().snapshotCursors().find(session, number);
                if (kept == null) {
                    throw new RequestException(Status.GONE, "snapshot " + number + " was read, or gave way to another");
                }
                sendPage(request, new SnapshotCursors.NumberedSnapshot(number, kept), first);
            } else {
                endpointContext.later(
                        session,
                        request,
                        () -> sendPage(
                                request,
                                endpointContext.shared().snapshotCursors().open(session, endpointContext.cache()),
                                first));
            }
        };
    }

    private void sendPage(EndpointRequest request, SnapshotCursors.NumberedSnapshot numberedSnapshot, int first) {
        StoreSnapshot snapshot = numberedSnapshot.snapshot();
        int stored = snapshot.stored().size();
        int from = Math.min(first, stored);
        List<CacheEvent> events = snapshot.stored().subList(from, Math.min(stored, from + MAX_EVENTS));
        BodyWriter reply = new BodyWriter(256 + EventCodec.BYTES * events.size());
        BodyWriter names = new BodyWriter();
        snapshot.namespaces().forEach((id, namespace) -> {
            Integer own = session.namespaceNumbers().numbers().get(namespace);
            if (own != null) {
                names.i32(id).i32(own);
            }
        });
        if (from + events.size() == stored) {
            endpointContext.shared().snapshotCursors().finish(session, numberedSnapshot.number());
        }
        reply.i64(numberedSnapshot.number())
                .i64(snapshot.nextSequence())
                .i32(stored)
                .i32(names.size() / 8);
        reply.i32(events.size()).i32(0).append(names);
        events.forEach(event -> EventCodec.write(event, reply));
        request.reply(reply);
    }

    /// `u64 timeout` → `u8 durable`
    RequestDispatcher.RequestAction flush(EndpointRequest request, BodyReader body) throws ProtocolException {
        Duration timeout = Duration.ofNanos(request.boundedTimeout(body.nonNegativeLong("timeout")));
        return () -> {
            requireFlushAllowed();
            endpointContext.later(
                    session,
                    request,
                    () -> request.reply(
                            new BodyWriter().u8(endpointContext.cache().flush(timeout) ? 1 : 0)));
        };
    }

    /// A flush writes what all tenants have stored, and may take minutes of the disks' time.
    private void requireFlushAllowed() throws RequestException {
        String only = session.onlyTenant();
        if (only != null
                && !only.equals(DEFAULT_TENANT)
                && !endpointContext.options().domains().containsKey(only)) {
            throw new RequestException(
                    Status.FORBIDDEN,
                    "tenant = \"%s\" may not flush, as that writes what all tenants have; allowed: tenant \"%s\", or a"
                                    .formatted(only, DEFAULT_TENANT)
                            + " client that may speak for all");
        }
    }
}
