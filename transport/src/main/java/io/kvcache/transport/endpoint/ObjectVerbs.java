package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.ObjectHintCodec;
import io.kvcache.transport.wire.Violation;
import java.util.List;
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

    /// `u32 namespace` and a [hint][ObjectHintCodec] → `u32 taken`; a kind that is not known is
    /// not.
    Requests.Parsed hint(Request request, BodyReader body) throws Violation {
        Namespace namespace = namespace(session, body);
        ObjectHintCodec.Told told = ObjectHintCodec.read(body);
        return () -> {
            ObjectHint hint = told.hint();
            request.reply(new BodyWriter().i32(hint == null ? 0 : take(namespace, told.keys(), hint)));
        };
    }

    private int take(Namespace namespace, List<byte[]> keys, ObjectHint hint) {
        if (!(hint instanceof ObjectHint.Pin pin)) {
            return service.cache().hintObjects(namespace, keys, hint);
        }
        int taken = 0;
        for (byte[] key : keys) {
            taken += session.pins().take(PinOwners.of(service.cache()), wanted(namespace, key, pin), pin.forNanos())
                    ? 1
                    : 0;
        }
        return pin.forNanos() == 0 ? taken : Math.min(taken, SessionPins.MOST); // the first have ended
    }

    private SessionPins.Wanted wanted(Namespace namespace, byte[] key, ObjectHint.Pin pin) {
        KvCache cache = service.cache();
        List<byte[]> one = List.of(key);
        return new SessionPins.Wanted(
                BlockKey.ofObject(namespace, key),
                () -> cache.hintObjects(namespace, one, pin) > 0,
                () -> cache.hintObjects(namespace, one, new ObjectHint.Pin(0)));
    }

    /// `u32 namespace, u32 key bytes, key` → `u8 was here`
    Requests.Parsed drop(Request request, BodyReader body) throws Violation {
        Named named = Named.read(session, body);
        return () -> request.reply(new BodyWriter().u8(service.cache().dropObject(named.namespace, named.key) ? 1 : 0));
    }
}
