package io.kvcache.transport.peer;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;

/// Clock, waits and timers of this package. The simulation has one under which threads take turns and time stands
/// still while one of them works, so that a run can be repeated. It needs [#wake] and [#schedule] for that, which
/// [io.kvcache.core.spi.Clock] does not have.
///
/// **Threads.** Any.
interface PeerClock {

    /// The machine's clock.
    PeerClock MACHINE = new PeerClock() {
        @Override
        public long nanos() {
            return System.nanoTime();
        }

        @Override
        @SuppressWarnings("WaitNotInLoop") // the caller's is the loop
        public void await(Object monitor, long untilNanos) throws InterruptedException {
            long left = untilNanos - System.nanoTime();
            if (left > 0) {
                TimeUnit.NANOSECONDS.timedWait(monitor, left);
            }
        }

        @Override
        @SuppressWarnings("NotifyWithoutLock") // the caller has it
        public void wake(Object monitor) {
            monitor.notifyAll();
        }
    };

    /// Returns nanoseconds since some fixed moment. Do not call it while holding a monitor that other threads
    /// want: under a test's clock they get their turns here.
    long nanos();

    /// Waits for [#wake] until a moment; it may return earlier. The caller holds the monitor and checks its
    /// condition again.
    void await(Object monitor, long untilNanos) throws InterruptedException;

    /// Wakes all waiting threads. The caller holds the monitor.
    void wake(Object monitor);

    /// Runs a task at a moment, on another thread.
    ///
    /// @return takes that back, unless it runs already
    default Runnable schedule(long momentNanos, Runnable what) {
        CompletableFuture<Boolean> moment = new CompletableFuture<Boolean>()
                .completeOnTimeout(true, Math.max(0, momentNanos - nanos()), TimeUnit.NANOSECONDS);
        var _ = moment.thenAccept(come -> {
            if (come) {
                ForkJoinPool.commonPool().execute(what);
            }
        });
        return () -> moment.complete(false);
    }

    /// Returns the moment after a delay, which may be as long as a long can be.
    default long deadlineAfter(long nanos) {
        return nanos() + Math.min(nanos, Long.MAX_VALUE / 4);
    }
}
