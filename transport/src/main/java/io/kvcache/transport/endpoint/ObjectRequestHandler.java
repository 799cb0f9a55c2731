package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Timeouts;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.ObjectHintCodec;
import io.kvcache.transport.wire.ProtocolException;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Requests about opaque objects that are here.
final class ObjectRequestHandler {

    private final EndpointContext endpointContext;
    private final ClientSession session;
    private final BlockSender blockSender;
    private final SharedMemoryHandler share;

    ObjectRequestHandler(
            EndpointContext endpointContext,
            ClientSession session,
            BlockSender blockSender,
            SharedMemoryHandler share) {
        this.endpointContext = endpointContext;
        this.session = session;
        this.blockSender = blockSender;
        this.share = share;
    }

    static Namespace namespace(ClientSession session, BodyReader body) throws ProtocolException {
        int id = body.count("namespace");
        Namespace namespace = session.namespace(id);
        if (namespace == null) {
            throw new ProtocolException("namespace = %d; allowed: those that REGISTER has answered".formatted(id));
        }
        return namespace;
    }

    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record NamedObject(Namespace namespace, byte[] key) {

        static NamedObject read(ClientSession session, BodyReader body) throws ProtocolException {
            Namespace namespace = ObjectRequestHandler.namespace(session, body);
            return new NamedObject(namespace, body.bytes("key", body.count("key bytes")));
        }
    }

    /// `u32 namespace, u32 key bytes, u8 send, u8 places, 6 × 0, u64 timeout, key` → `u64 lease (0: not
    /// here), u64 bytes, u8 sent`, [places][SharedMemoryHandler] and DATA if sent
    RequestDispatcher.RequestAction get(EndpointRequest request, BodyReader body) throws ProtocolException {
        Namespace namespace = namespace(session, body);
        int keyBytes = body.count("key bytes");
        boolean send = body.u8("send") != 0;
        boolean places = body.u8("places") != 0;
        long timeout = request.boundedTimeout(body.skip(6).nonNegativeLong("timeout"));
        byte[] key = body.bytes("key", keyBytes);
        KvCache cache = endpointContext.cache();
        if (timeout == 0) {
            return () -> sendObject(request, cache.getObject(namespace, key), new RequestedParts(send, places));
        }
        return () -> endpointContext.later(
                session,
                request,
                () -> cache.fetchObject(namespace, key, Duration.ofNanos(timeout), endpointContext.executor()),
                view -> sendObject(request, view, new RequestedParts(false, places)));
    }

    /// What the client wants of an object: its bytes, or where they lie.
    private record RequestedParts(boolean bytes, boolean places) {}

    private void sendObject(EndpointRequest request, @Nullable ObjectView view, RequestedParts requestedParts)
            throws RequestException {
        if (view == null) {
            request.reply(new BodyWriter().i64(HandleTable.NONE).i64(0).u8(0));
            return;
        }
        Lease lease = Lease.of(view);
        long number = blockSender.grantAndEnter(lease);
        try {
            BodyWriter reply = new BodyWriter().i64(number).i64(view.bytes()).u8(requestedParts.bytes ? 1 : 0);
            if (requestedParts.places) {
                share.writePlaces(view, reply);
            }
            if (request.reply(reply) && requestedParts.bytes) {
                blockSender.send(request, view);
            }
        } finally {
            lease.leave();
        }
    }

    /// `u32 namespace, u32 key bytes, key` → `u8 here`
    RequestDispatcher.RequestAction contains(EndpointRequest request, BodyReader body) throws ProtocolException {
        NamedObject namedObject = NamedObject.read(session, body);
        return () -> request.reply(new BodyWriter()
                .u8(endpointContext.cache().containsObject(namedObject.namespace, namedObject.key) ? 1 : 0));
    }

    /// `u32 namespace` and a [hint][ObjectHintCodec] → `u32 taken`; a kind that is not known is
    /// not.
    RequestDispatcher.RequestAction hint(EndpointRequest request, BodyReader body) throws ProtocolException {
        Namespace namespace = namespace(session, body);
        ObjectHintCodec.DecodedObjectHint decodedObjectHint = ObjectHintCodec.read(body);
        return () -> {
            ObjectHint hint = decodedObjectHint.hint();
            request.reply(
                    new BodyWriter().i32(hint == null ? 0 : applyHint(namespace, decodedObjectHint.keys(), hint)));
        };
    }

    private int applyHint(Namespace namespace, List<byte[]> keys, ObjectHint hint) {
        if (!(hint instanceof ObjectHint.Pin pin)) {
            return endpointContext.cache().hintObjects(namespace, keys, hint);
        }
        int taken = 0;
        for (byte[] key : keys) {
            taken += session.pins()
                            .apply(
                                    SessionPins.PinRefCounts.of(endpointContext.cache()),
                                    pinRequest(namespace, key, pin),
                                    Timeouts.toNanos(pin.time()))
                    ? 1
                    : 0;
        }
        return pin.time().isZero() ? taken : Math.min(taken, SessionPins.MAX_PINS); // the first have ended
    }

    private SessionPins.PinRequest pinRequest(Namespace namespace, byte[] key, ObjectHint.Pin pin) {
        KvCache cache = endpointContext.cache();
        List<byte[]> one = List.of(key);
        return new SessionPins.PinRequest(
                BlockKey.ofObject(namespace, key),
                () -> cache.hintObjects(namespace, one, pin) > 0,
                () -> cache.hintObjects(namespace, one, new ObjectHint.Pin(Duration.ZERO)));
    }

    /// `u32 namespace, u32 key bytes, key` → `u8 was here`
    RequestDispatcher.RequestAction drop(EndpointRequest request, BodyReader body) throws ProtocolException {
        NamedObject namedObject = NamedObject.read(session, body);
        return () -> request.reply(new BodyWriter()
                .u8(endpointContext.cache().dropObject(namedObject.namespace, namedObject.key) ? 1 : 0));
    }
}
