package io.kvcache.transport.remote;

import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;

/// A request that got no answer, or a refusal.
final class RpcException extends Exception {

    private static final long serialVersionUID = 1L;

    private final boolean hasReply;
    private final Status status;
    private final boolean mayConcernChain;

    private RpcException(boolean answered, Status status, String text, boolean perhapsOfChain) {
        super(text, null, false, false);
        this.hasReply = answered;
        this.status = status;
        this.mayConcernChain = perhapsOfChain;
    }

    static RpcException rejected(Status status, String text) {
        return new RpcException(true, status, text, false);
    }

    /// As the server says it: `text`, and behind it whether the chain is the reason, which older
    /// ones do not say.
    static RpcException rejected(Status status, BodyReader body) throws ProtocolException {
        String text = body.text("text");
        boolean chains = status == Status.BUSY || status == Status.INVALID;
        return new RpcException(true, status, text, chains && (!body.hasRemaining() || body.u8("of the chain") != 0));
    }

    static RpcException noReply(String why) {
        return new RpcException(false, Status.FAILED, why, false);
    }

    /// Whether what was told of the chain is not there, or may not be, as the server does not say.
    boolean mayConcernChain() {
        return mayConcernChain;
    }

    /// Whether the server refused; else it was not heard.
    boolean hasReply() {
        return hasReply;
    }

    /// Whether the server had no room for it, which may be otherwise the next time.
    boolean isBusy() {
        return hasReply && status == Status.BUSY;
    }

    Status status() {
        return status;
    }
}
