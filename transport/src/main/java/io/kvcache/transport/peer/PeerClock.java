package io.kvcache.transport.peer;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;

/// Time as the threads of this package see it: they read it, and they wait for each other. A test has one
/// of its own, under which they take turns and time stands still while one of them works, so that a run can
/// be had again.
///
/// **Threads.** Any.
interface PeerClock {

    /// The machine's.
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

    /// Nanoseconds since some fixed moment. Not to be read inside a monitor that others want: under a
    /// test's clock they get their turns here.
    long nanos();

    /// Waits for [#wake], no longer than to a moment; perhaps for a shorter time. The caller has the
    /// monitor, in which it looks again at what it waits for.
    void await(Object monitor, long untilNanos) throws InterruptedException;

    /// Wakes all waiting threads. The caller has the monitor.
    void wake(Object monitor);

    /// Runs something at a moment, beside all other threads.
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

    /// The moment after a while, which may be as long as there is.
    default long deadlineAfter(long nanos) {
        return nanos() + Math.min(nanos, Long.MAX_VALUE / 4);
    }
}
