package io.kvcache.transport.net;

import io.kvcache.core.time.Backoff;
import java.util.concurrent.TimeUnit;

/// For how long a server is not used after a failure.
///
/// A failure costs a short pause, which is twice as long after each further one. If the server was not heard while a
/// call waited for it, the pause is several times as long as that wait, or the callers of a server that stands still
/// would wait for it most of the time. That longer part ends as soon as the server is heard, by any message: then it
/// was slow, or is back.
///
/// **Threads.** Any.
public final class FailurePause {

    /// How many times as long as a call waited for it a silent server is not used.
    private static final int WAIT_FACTOR = 4;

    private static final long FIRST_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final long maxNanos;
    private final Backoff backoff;
    private boolean active;
    private long shortUntil;
    private long until;
    private long lifeSigns;

    /// A call, and what was known of the server when it began.
    ///
    /// @param lifeSigns messages of the server so far
    public record Call(long startNanos, long lifeSigns) {}

    /// @param maxNanos the longest pause
    public FailurePause(long maxNanos) {
        this.maxNanos = maxNanos;
        backoff = new Backoff(Math.min(FIRST_NANOS, maxNanos), maxNanos);
    }

    /// Returns whether the server is not to be used now.
    ///
    /// @param signs life signs of the server so far
    public synchronized boolean isActive(long nowNanos, long signs) {
        active = active && (nowNanos - shortUntil < 0 || (nowNanos - until < 0 && signs == lifeSigns));
        return active;
    }

    /// Begins or extends the pause after a call that failed.
    ///
    /// @param signs life signs of the server so far
    /// @return nanoseconds from now until it ends, unless the server is heard before; 0 when it was active already
    public synchronized long onFailure(Call call, long nowNanos, long signs) {
        boolean wasActive = isActive(nowNanos, signs);
        long pause = backoff.nextNanos();
        boolean silent = signs == call.lifeSigns;
        long longest = silent ? Math.clamp(WAIT_FACTOR * (nowNanos - call.startNanos), pause, maxNanos) : pause;
        shortUntil = nowNanos + pause;
        until = nowNanos + longest;
        lifeSigns = signs;
        active = true;
        return wasActive ? 0 : longest;
    }

    /// Ends the pause. The next one is short again.
    public synchronized void onSuccess() {
        backoff.reset();
        active = false;
    }
}
