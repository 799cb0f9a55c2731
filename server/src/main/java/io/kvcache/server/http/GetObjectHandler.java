package io.kvcache.server.http;

import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.ReadResult;
import io.kvcache.server.keyspace.PinnedValue;
import io.netty.handler.codec.http.HttpResponseStatus;
import org.jspecify.annotations.Nullable;

/// GET and HEAD of an object.
final class GetObjectHandler implements HttpRequestHandler.BodylessHandler {

    private final Keyspace keyspace;
    private final byte[] key;
    private final @Nullable String range;
    private final boolean withBody;

    /// @param withBody false for HEAD
    GetObjectHandler(Keyspace keyspace, byte[] key, @Nullable String range, boolean withBody) {
        this.keyspace = keyspace;
        this.key = key;
        this.range = range;
        this.withBody = withBody;
    }

    @Override
    public void respond(HttpResponder out) {
        ReadResult readResult = keyspace.read(key);
        if (readResult.outcome() == ReadResult.Outcome.ON_DISK) {
            out.awaitValue(keyspace, key, come -> reply(come, out));
        } else {
            reply(readResult, out);
        }
    }

    private void reply(ReadResult readResult, HttpResponder out) {
        PinnedValue value = readResult.value();
        if (value != null && !withBody && !keyspace.announceExists(key)) {
            value.close(); // it cannot be kept until the GET that follows
            out.sendProblem(notFound());
            return;
        }
        if (value != null) {
            out.sendPinned(PinnedBytes.of(value), range, withBody);
            return;
        }
        out.sendProblem(
                switch (readResult.outcome()) {
                    case THROTTLED ->
                        ProblemDetails.sendLimitReached(
                                keyspace.keyspaceLimits().outgoing());
                    case TIMED_OUT -> ProblemDetails.timedOut(HttpResponseStatus.SERVICE_UNAVAILABLE);
                    case HIT, MISS, ON_DISK -> notFound();
                });
    }

    private static ProblemDetails notFound() {
        return new ProblemDetails(HttpResponseStatus.NOT_FOUND, "there is no such object");
    }
}
