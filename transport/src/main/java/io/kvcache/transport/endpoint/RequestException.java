package io.kvcache.transport.endpoint;

import io.kvcache.transport.wire.Status;

/// A request that cannot be done, and why. The connection goes on.
final class RequestException extends Exception {

    private static final long serialVersionUID = 1L;

    private final Status status;
    private final boolean concernsChain;

    RequestException(Status status, String text) {
        this(status, text, false);
    }

    private RequestException(Status status, String text, boolean ofChain) {
        super(text, null, false, false);
        this.status = status;
        this.concernsChain = ofChain;
    }

    /// One whose chain has not been taken, or not kept: it may help to tell it again.
    static RequestException forChain(Status status, String text) {
        return new RequestException(status, text, true);
    }

    /// Whether it is the chain that is refused, and not what was asked of it.
    boolean concernsChain() {
        return concernsChain;
    }

    Status status() {
        return status;
    }
}
