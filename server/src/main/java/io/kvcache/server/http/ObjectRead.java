package io.kvcache.server.http;

import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Reading;
import io.kvcache.server.keyspace.Value;
import io.netty.handler.codec.http.HttpResponseStatus;
import org.jspecify.annotations.Nullable;

/// GET and HEAD of an object.
final class ObjectRead implements Exchange.Plain {

    private final Keyspace keyspace;
    private final byte[] key;
    private final @Nullable String range;
    private final boolean withBody;

    /// @param withBody false for HEAD
    ObjectRead(Keyspace keyspace, byte[] key, @Nullable String range, boolean withBody) {
        this.keyspace = keyspace;
        this.key = key;
        this.range = range;
        this.withBody = withBody;
    }

    @Override
    public void answer(HttpReplies out) {
        Reading reading = keyspace.read(key);
        if (reading.outcome() == Reading.Outcome.AWAY) {
            out.await(keyspace, key, come -> reply(come, out));
        } else {
            reply(reading, out);
        }
    }

    private void reply(Reading reading, HttpReplies out) {
        Value value = reading.value();
        if (value != null && !withBody && !keyspace.told(key)) {
            value.close(); // it cannot be kept until the GET that follows
            out.problem(missing());
            return;
        }
        if (value != null) {
            out.held(HeldBytes.of(value), range, withBody);
            return;
        }
        out.problem(
                switch (reading.outcome()) {
                    case BUSY -> Problem.sending(keyspace.bounds().leaving());
                    case LATE -> Problem.late(HttpResponseStatus.SERVICE_UNAVAILABLE);
                    case FOUND, ABSENT, AWAY -> missing();
                });
    }

    private static Problem missing() {
        return new Problem(HttpResponseStatus.NOT_FOUND, "there is no such object");
    }
}
