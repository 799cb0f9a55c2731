package io.kvcache.bench.transport;

import io.aeron.Aeron;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;

/// What both sides of bare Aeron agree on.
final class BaselineAeron {

    private static final int FIRST_STREAM = 9000;

    private BaselineAeron() {}

    /// Through a driver that runs.
    static Aeron connect(String driver) {
        return Aeron.connect(new Aeron.Context().aeronDirectoryName(driver));
    }

    /// The stream that a connection's requests go by.
    static int requestStream(int connection) {
        return FIRST_STREAM + 2 * connection;
    }

    /// The stream that a connection's answers come by.
    static int replyStream(int connection) {
        return FIRST_STREAM + 2 * connection + 1;
    }

    /// Spins as shortly and sleeps as shortly as our own connections do while they are busy.
    static IdleStrategy idleStrategy() {
        long sleep = TimeUnit.MICROSECONDS.toNanos(20);
        return new BackoffIdleStrategy(100, 0, sleep, sleep);
    }
}
