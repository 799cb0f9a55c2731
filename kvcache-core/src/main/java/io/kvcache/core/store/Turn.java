package io.kvcache.core.store;

import java.util.concurrent.locks.ReentrantLock;

/// How the store's lock is taken where a turn is short and comes often: somebody else's is over in
/// half a microsecond, and to sleep through it and be woken takes twenty. So the lock is asked for
/// a few times more before its queue is joined.
final class Turn {

    /// With the processor's pauses between them, two or three turns of others.
    private static final int TRIES = 50;

    private Turn() {}

    /// Takes the lock.
    static void await(ReentrantLock lock) {
        for (int i = 0; i < TRIES; i++) {
            if (lock.tryLock()) {
                return;
            }
            Thread.onSpinWait();
        }
        lock.lock();
    }
}
