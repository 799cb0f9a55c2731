package io.kvcache.transport.remote;

import io.kvcache.transport.wire.BodyReader;

/// An answer of which nothing matters but that it is not a refusal.
final class Answered implements DataLine.Exchange {

    private boolean replied;

    @Override
    public void reply(BodyReader body) {
        replied = true;
    }

    @Override
    public boolean done() {
        return replied;
    }
}
