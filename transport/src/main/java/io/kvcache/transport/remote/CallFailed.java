package io.kvcache.transport.remote;

import io.kvcache.transport.wire.Status;

/// A request that got no answer, or a refusal.
final class CallFailed extends Exception {

    private static final long serialVersionUID = 1L;

    private final boolean answered;
    private final Status status;

    private CallFailed(boolean answered, Status status, String text) {
        super(text, null, false, false);
        this.answered = answered;
        this.status = status;
    }

    static CallFailed refused(Status status, String text) {
        return new CallFailed(true, status, text);
    }

    static CallFailed unanswered(String why) {
        return new CallFailed(false, Status.FAILED, why);
    }

    /// Whether the server refused; else it was not heard.
    boolean answered() {
        return answered;
    }

    /// Whether the server had no room for it, which may be otherwise the next time.
    boolean busy() {
        return answered && status == Status.BUSY;
    }

    Status status() {
        return status;
    }
}
