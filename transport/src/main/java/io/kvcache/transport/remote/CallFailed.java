package io.kvcache.transport.remote;

import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;

/// A request that got no answer, or a refusal.
final class CallFailed extends Exception {

    private static final long serialVersionUID = 1L;

    private final boolean answered;
    private final Status status;
    private final boolean perhapsOfChain;

    private CallFailed(boolean answered, Status status, String text, boolean perhapsOfChain) {
        super(text, null, false, false);
        this.answered = answered;
        this.status = status;
        this.perhapsOfChain = perhapsOfChain;
    }

    static CallFailed refused(Status status, String text) {
        return new CallFailed(true, status, text, false);
    }

    /// As the server says it: `text`, and behind it whether the chain is the reason, which older
    /// ones do not say.
    static CallFailed refused(Status status, BodyReader body) throws Violation {
        String text = body.text("text");
        boolean chains = status == Status.BUSY || status == Status.INVALID;
        return new CallFailed(true, status, text, chains && (!body.more() || body.u8("of the chain") != 0));
    }

    static CallFailed unanswered(String why) {
        return new CallFailed(false, Status.FAILED, why, false);
    }

    /// Whether what was told of the chain is not there, or may not be, as the server does not say.
    boolean perhapsOfChain() {
        return perhapsOfChain;
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
