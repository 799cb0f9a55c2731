package io.kvcache.transport.endpoint;

import io.kvcache.transport.link.CloseReason;
import io.kvcache.transport.link.FrameHandler;
import io.kvcache.transport.link.Landing;
import io.kvcache.transport.link.Outlet;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import org.jspecify.annotations.Nullable;

/// One connection, from its first frame to its last: first who it is, then requests in order.
final class Conversation implements FrameHandler {

    /// Of a stranger: HELLO with the longest name of a tenant, and as much for what a later version adds.
    static final int STRANGERS_BODY_BYTES = 128 << 10;

    private final Endpoint endpoint;
    private final Outlet outlet;
    private final Counters counters;
    private final long since;
    private final Greeting greeting;
    private @Nullable Requests requests;
    private volatile @Nullable Session session;

    /// @param since when the connection was opened
    Conversation(Endpoint endpoint, Outlet outlet, long since) {
        this.endpoint = endpoint;
        this.outlet = outlet;
        this.since = since;
        counters = endpoint.service().counters();
        greeting = new Greeting(endpoint, this);
    }

    /// Whether it has taken too long to say who it is.
    boolean late(long nowNanos, long handshakeNanos) {
        return session == null && nowNanos - since > handshakeNanos;
    }

    Outlet outlet() {
        return outlet;
    }

    /// A long frame takes its time, and who sends it is not silent.
    @Override
    public void arriving() {
        Requests open = requests;
        if (open != null) {
            heard(open.session());
        }
    }

    @Override
    public int longestBody() {
        return requests == null ? STRANGERS_BODY_BYTES : FrameHeader.MAX_BODY_BYTES;
    }

    @Override
    public void message(FrameHeader header, BodyReader body) throws Violation {
        MessageType type = MessageType.of(header.type());
        if (header.reply() || type == MessageType.ERROR) {
            return;
        }
        counters.requests.increment();
        Requests open = requests;
        if (type == null) {
            refuseUnknown(header);
        } else if (open == null) {
            greet(type, header, body);
        } else {
            open.message(type, Request.of(type, header, outlet, counters), body);
        }
    }

    private void refuseUnknown(FrameHeader header) {
        counters.refusals.increment();
        if (header.request() != 0) {
            String text = "message type " + header.type() + " is not known here";
            outlet.send(BodyWriter.refusal(header.type(), header.request(), Status.UNSUPPORTED, text));
        }
    }

    private void greet(MessageType type, FrameHeader header, BodyReader body) throws Violation {
        Session welcomed = greeting.message(type, Request.of(type, header, outlet, counters), body);
        if (welcomed != null) {
            heard(welcomed);
            requests = new Requests(endpoint.service().of(welcomed.onlyTenant()), welcomed);
            session = welcomed;
        }
    }

    private void heard(Session by) {
        by.heard(endpoint.nowNanos());
    }

    @Override
    public Landing payload(FrameHeader header, BodyReader body) throws Violation {
        MessageType type = MessageType.of(header.type());
        Requests open = requests;
        if (open == null) {
            throw new Violation("a payload before AUTH; allowed: HELLO and AUTH, without");
        }
        counters.requests.increment();
        if (type == null || header.reply()) {
            return Landing.discard(header.payloadBytes(), sum -> refuseUnknown(header));
        }
        return open.payload(header, Request.of(type, header, outlet, counters), body);
    }

    @Override
    public void closed(CloseReason reason) {
        counters.closed(reason);
        Requests open = requests;
        if (open != null) {
            open.closed();
            open.session().leave(outlet);
            if (greeting.began()) {
                open.session().end(CloseReason.SESSION_OVER);
            }
        }
        endpoint.gone(this, open == null ? null : open.session());
    }
}
