package io.kvcache.transport.endpoint;

import io.kvcache.transport.wire.Status;

/// A request that cannot be done, and why. The connection goes on.
final class Refused extends Exception {

    private static final long serialVersionUID = 1L;

    private final Status status;

    Refused(Status status, String text) {
        super(text, null, false, false);
        this.status = status;
    }

    Status status() {
        return status;
    }
}
