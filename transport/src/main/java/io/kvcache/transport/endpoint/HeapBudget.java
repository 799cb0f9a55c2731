package io.kvcache.transport.endpoint;

import java.util.Comparator;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/// A part of the heap that all connections of an endpoint share. When it is full, whichever of them
/// has taken the most gives up what it used least recently: so one that comes finds room, however
/// much those before it have told, and one that takes much takes it of itself.
///
/// **Threads.** Any. Locks are taken in the order of this, then [ChainCache].
final class HeapBudget {

    private final long maxBytes;
    private final AtomicLong reservedBytes = new AtomicLong();
    private final Set<ChainCache> chainCaches = ConcurrentHashMap.newKeySet();

    /// @param maxBytes bytes
    HeapBudget(long maxBytes) {
        this.maxBytes = maxBytes;
    }

    /// One more connection, which can be asked to give up some until it [goes][#unregister].
    void register(ChainCache taker) {
        chainCaches.add(taker);
    }

    void unregister(ChainCache taker) {
        chainCaches.remove(taker);
    }

    /// Takes so many bytes, to be [given back][#release], unless that would be too many even if all
    /// gave up what they have.
    boolean reserve(long bytes) {
        boolean there = tryReserveFree(bytes);
        while (!there && bytes <= maxBytes && reclaim()) {
            there = tryReserveFree(bytes);
        }
        return there;
    }

    private boolean tryReserveFree(long bytes) {
        long before = reservedBytes.get();
        while (bytes <= maxBytes - before) {
            if (reservedBytes.compareAndSet(before, before + bytes)) {
                return true;
            }
            before = reservedBytes.get();
        }
        return false;
    }

    private synchronized boolean reclaim() {
        return chainCaches.stream()
                .max(Comparator.comparingLong(ChainCache::reservedBytes))
                .filter(ChainCache::evictLeastRecentlyUsed)
                .isPresent();
    }

    /// Gives back what was taken.
    void release(long bytes) {
        reservedBytes.addAndGet(-bytes);
    }

    /// Bytes that are taken.
    long reservedBytes() {
        return reservedBytes.get();
    }

    /// Bytes that may be.
    long maxBytes() {
        return maxBytes;
    }
}
