package io.kvcache.core.store;

import java.util.concurrent.locks.ReentrantLock;

/// How the store's lock is taken where a turn is short and comes often: somebody else's is over in
/// half a microsecond, and to sleep through it and be woken takes twenty. So the lock is asked for
/// a few times more before its queue is joined.
final class SpinLock {

    /// With the processor's pauses between them, two or three turns of others.
    private static final int MAX_SPINS = 50;

    private SpinLock() {}

    /// Takes the lock.
    static void lock(ReentrantLock lock) {
        for (int i = 0; i < MAX_SPINS; i++) {
            if (lock.tryLock()) {
                return;
            }
            Thread.onSpinWait();
        }
        lock.lock();
    }
}
