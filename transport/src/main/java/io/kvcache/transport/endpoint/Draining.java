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
final class Draining {

    static final String TEXT = "this server is going down";

    private static final long MOMENT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /// What begins something that is to be given back.
    private static final Set<MessageType> BEGINNING = Set.of(
            MessageType.ACQUIRE,
            MessageType.GET_OBJECT,
            MessageType.RESERVE,
            MessageType.RESERVE_OBJECT,
            MessageType.STAGE,
            MessageType.PUT_STAGED,
            MessageType.PUT_OBJECT_STAGED);

    private volatile boolean begun;
    private volatile long busyNanos;

    void begin(long nowNanos) {
        busyNanos = nowNanos;
        begun = true;
    }

    boolean begun() {
        return begun;
    }

    /// Whether a request would begin something new.
    boolean refuses(MessageType type) {
        return begun && BEGINNING.contains(type);
    }

    /// Something that had begun is under way.
    void busy(long nowNanos) {
        busyNanos = nowNanos;
    }

    /// Whether nothing has been under way for a moment.
    boolean quiet(long nowNanos) {
        return begun && nowNanos - busyNanos > MOMENT_NANOS;
    }
}
