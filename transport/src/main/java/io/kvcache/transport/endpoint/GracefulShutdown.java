package io.kvcache.transport.endpoint;

import io.kvcache.transport.wire.MessageType;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/// How an endpoint goes down: nothing new begins, what has begun goes on, and it is over when nobody has
/// gone on for a moment.
///
/// The moment is for who has heard that blocks are there and is about to ask for them, or fills memory
/// that it is about to send.
///
/// **Threads.** Any.
final class GracefulShutdown {

    static final String REJECTION_MESSAGE = "this server is going down";

    private static final long IDLE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /// What begins something that is to be given back.
    private static final Set<MessageType> STARTING_REQUESTS = Set.of(
            MessageType.ACQUIRE,
            MessageType.GET_OBJECT,
            MessageType.RESERVE,
            MessageType.RESERVE_OBJECT,
            MessageType.STAGE,
            MessageType.PUT_STAGED,
            MessageType.PUT_OBJECT_STAGED);

    private volatile boolean started;
    private volatile long lastActivityNanos;

    void begin(long nowNanos) {
        lastActivityNanos = nowNanos;
        started = true;
    }

    boolean isStarted() {
        return started;
    }

    /// Whether a request would begin something new.
    boolean rejects(MessageType type) {
        return started && STARTING_REQUESTS.contains(type);
    }

    /// Something that had begun is under way.
    void onActivity(long nowNanos) {
        lastActivityNanos = nowNanos;
    }

    /// Whether nothing has been under way for a moment.
    boolean isIdle(long nowNanos) {
        return started && nowNanos - lastActivityNanos > IDLE_NANOS;
    }
}
