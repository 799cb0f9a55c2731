package io.kvcache.transport.endpoint;

import java.util.Comparator;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/// A part of the heap that all connections of an endpoint share. When it is full, whichever of them
/// has taken the most gives up what it used least recently: so one that comes finds room, however
/// much those before it have told, and one that takes much takes it of itself.
///
/// **Threads.** Any. Locks are taken in the order of this, then [ChainSlots].
final class HeapShare {

    private final long most;
    private final AtomicLong taken = new AtomicLong();
    private final Set<ChainSlots> takers = ConcurrentHashMap.newKeySet();

    /// @param most bytes
    HeapShare(long most) {
        this.most = most;
    }

    /// One more connection, which can be asked to give up some until it [goes][#leaves].
    void joins(ChainSlots taker) {
        takers.add(taker);
    }

    void leaves(ChainSlots taker) {
        takers.remove(taker);
    }

    /// Takes so many bytes, to be [given back][#give], unless that would be too many even if all
    /// gave up what they have.
    boolean take(long bytes) {
        boolean there = takeFree(bytes);
        while (!there && bytes <= most && reclaim()) {
            there = takeFree(bytes);
        }
        return there;
    }

    private boolean takeFree(long bytes) {
        long before = taken.get();
        while (bytes <= most - before) {
            if (taken.compareAndSet(before, before + bytes)) {
                return true;
            }
            before = taken.get();
        }
        return false;
    }

    private synchronized boolean reclaim() {
        return takers.stream()
                .max(Comparator.comparingLong(ChainSlots::taken))
                .filter(ChainSlots::giveUp)
                .isPresent();
    }

    /// Gives back what was taken.
    void give(long bytes) {
        taken.addAndGet(-bytes);
    }

    /// Bytes that are taken.
    long taken() {
        return taken.get();
    }

    /// Bytes that may be.
    long most() {
        return most;
    }
}
