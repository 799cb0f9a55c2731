package io.kvcache.transport.remote;

import io.kvcache.transport.wire.BodyReader;

/// An answer of which nothing matters but that it is not a refusal.
final class Ack implements DataConnection.ReplyHandler {

    private boolean replied;

    @Override
    public void onReply(BodyReader body) {
        replied = true;
    }

    @Override
    public boolean isComplete() {
        return replied;
    }
}
