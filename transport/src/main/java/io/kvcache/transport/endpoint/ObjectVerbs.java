package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Violation;
import org.jspecify.annotations.Nullable;

/// Requests about opaque objects that are here.
final class ObjectVerbs {

    private final Service service;
    private final Session session;
    private final Bytes bytes;
    private final ShareVerbs share;

    ObjectVerbs(Service service, Session session, Bytes bytes, ShareVerbs share) {
        this.service = service;
        this.session = session;
        this.bytes = bytes;
        this.share = share;
    }

    static Namespace namespace(Session session, BodyReader body) throws Violation {
        int id = body.count("namespace");
        Namespace namespace = session.namespace(id);
        if (namespace == null) {
            throw new Violation("namespace = %d; allowed: those that REGISTER has answered".formatted(id));
        }
        return namespace;
    }

    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Named(Namespace namespace, byte[] key) {

        static Named read(Session session, BodyReader body) throws Violation {
            Namespace namespace = ObjectVerbs.namespace(session, body);
            return new Named(namespace, body.bytes("key", body.count("key bytes")));
        }
    }

    /// `u32 namespace, u32 key bytes, u8 send, u8 places, 6 × 0, u64 timeout, key` → `u64 lease (0: not
    /// here), u64 bytes, u8 sent`, [places][ShareVerbs] and DATA if sent
    Requests.Parsed get(Request request, BodyReader body) throws Violation {
        Namespace namespace = namespace(session, body);
        int keyBytes = body.count("key bytes");
        boolean send = body.u8("send") != 0;
        boolean places = body.u8("places") != 0;
        long timeout = request.bounded(body.skip(6).amount("timeout"));
        byte[] key = body.bytes("key", keyBytes);
        KvCache cache = service.cache();
        if (timeout == 0) {
            return () -> answer(request, cache.getObject(namespace, key), new Wanted(send, places));
        }
        return () -> service.later(
                session,
                request,
                () -> cache.fetchObject(namespace, key, timeout, service.later()),
                view -> answer(request, view, new Wanted(false, places)));
    }

    /// What the client wants of an object: its bytes, or where they lie.
    private record Wanted(boolean bytes, boolean places) {}

    private void answer(Request request, @Nullable ObjectView view, Wanted wanted) throws Refused {
        if (view == null) {
            request.reply(new BodyWriter().i64(Claims.NONE).i64(0).u8(0));
            return;
        }
        Lease lease = Lease.of(view);
        long number = bytes.grantAndEnter(lease);
        try {
            BodyWriter reply = new BodyWriter().i64(number).i64(view.bytes()).u8(wanted.bytes ? 1 : 0);
            if (wanted.places) {
                share.write(view, reply);
            }
            if (request.reply(reply) && wanted.bytes) {
                bytes.send(request, view);
            }
        } finally {
            lease.leave();
        }
    }

    /// `u32 namespace, u32 key bytes, key` → `u8 here`
    Requests.Parsed contains(Request request, BodyReader body) throws Violation {
        Named named = Named.read(session, body);
        return () ->
                request.reply(new BodyWriter().u8(service.cache().containsObject(named.namespace, named.key) ? 1 : 0));
    }

    /// `u32 namespace, u32 key bytes, key` → `u8 was here`
    Requests.Parsed drop(Request request, BodyReader body) throws Violation {
        Named named = Named.read(session, body);
        return () -> request.reply(new BodyWriter().u8(service.cache().dropObject(named.namespace, named.key) ? 1 : 0));
    }
}
