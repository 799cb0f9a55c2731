package io.kvcache.transport.peer;

/// A question to peers that is on its way, for who wants to know the same.
///
/// **Threads.** Any.
final class SingleFlight {

    private final PeerClock clock;
    private boolean ended;

    SingleFlight(PeerClock clock) {
        this.clock = clock;
    }

    /// It is answered, or will not be.
    synchronized void end() {
        ended = true;
        clock.wake(this);
    }

    /// Waits for the end; answers whether it came by a moment.
    boolean awaitEnd(long untilNanos) {
        boolean late = false;
        try {
            while (!late) {
                synchronized (this) {
                    if (ended) {
                        return true;
                    }
                    clock.await(this, untilNanos);
                }
                late = untilNanos - clock.nanos() <= 0;
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
        return isEnded();
    }

    private synchronized boolean isEnded() {
        return ended;
    }
}
