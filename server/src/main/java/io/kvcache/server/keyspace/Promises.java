package io.kvcache.server.keyspace;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.Namespace;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Keeps what was said to exist from being evicted before whoever asked can fetch it.
///
/// A positive answer pins the value for a moment, within a quota of bytes. Asking again does not prolong it: when the
/// moment is over and nobody fetched the value, the key gets no new pin for four moments more, so a prober that
/// never fetches holds a value a fifth of the time at most and can not keep a full store from evicting. A fetch
/// clears that. Where the quota is used up the answer stands without a pin, and is counted as broken when the key is
/// fetched in vain within the moment.
///
/// **Bound.** At most [#MOST] keys are remembered; answers beyond give no promise.
///
/// **Threads.** Any.
final class Promises {

    /// Some 10 MB of heap when all are taken; two seconds of 30,000 positive answers a second.
    static final int MOST = 1 << 16;

    /// Moments that pass before a key that was not fetched is pinned again.
    private static final int PAUSE_MOMENTS = 4;

    private final long momentNanos;
    private final long quotaBytes;
    private final ConcurrentHashMap<Key, Promise> promises = new ConcurrentHashMap<>();
    private final Queue<Promise> pinned = new ConcurrentLinkedQueue<>();
    private final Queue<Promise> remembered = new ConcurrentLinkedQueue<>();
    private final AtomicLong heldBytes = new AtomicLong();
    private final LongAdder given = new LongAdder();
    private final LongAdder bare = new LongAdder();
    private final LongAdder broken = new LongAdder();

    /// @param momentNanos how long a promise holds; 0 for no promises
    /// @param quotaBytes most that may be pinned by promises
    Promises(long momentNanos, long quotaBytes) {
        this.momentNanos = momentNanos;
        this.quotaBytes = quotaBytes;
    }

    /// Whether the key is pinned by a promise, and so is there.
    boolean holds(Key key) {
        Promise promise = promises.get(key);
        return promise != null && promise.view != null;
    }

    /// Whether the key is promised, or was not long ago, so that there is no new promise to give.
    boolean remembers(Key key) {
        return promises.containsKey(key);
    }

    /// Promises a key that is in host memory, unless it is promised or was not long ago.
    void promise(Key key, KvCache cache, Namespace namespace, long now) {
        ObjectView view = remembers(key) ? null : cache.holdObject(namespace, key.bytes());
        if (view != null) {
            give(key, view, now);
            if (!cache.containsObject(namespace, key.bytes())) {
                withdraw(key); // Deleted meanwhile, by somebody who saw no promise to withdraw.
            }
        }
    }

    /// Takes over a view and keeps it open as long as a promise lasts; closes it when there is to be none.
    void give(Key key, ObjectView view, long now) {
        if (momentNanos == 0 || promises.size() >= MOST) {
            view.close();
            return;
        }
        long bytes = view.bytes();
        boolean pins = heldBytes.addAndGet(bytes) <= quotaBytes;
        Promise promise = new Promise(key, pins ? view : null, bytes, now + momentNanos);
        boolean isNew = promises.putIfAbsent(key, promise) == null;
        if (!isNew || !pins) {
            heldBytes.addAndGet(-bytes);
            view.close();
        }
        if (isNew) {
            (pins ? given : bare).increment();
            (pins ? pinned : remembered).add(promise);
        }
    }

    /// The key was fetched.
    void kept(Key key) {
        Promise promise = promises.get(key);
        if (promise != null) {
            promise.kept = true;
        }
    }

    /// The key was asked for and not found.
    void missed(Key key, long now) {
        Promise promise = promises.get(key);
        if (promise != null && now < promise.untilNanos && promises.remove(key, promise)) {
            broken.increment();
            release(promise);
        }
    }

    /// The value was deleted or replaced by its owner: nothing is promised any more.
    void withdraw(Key key) {
        Promise promise = promises.remove(key);
        if (promise != null) {
            release(promise);
        }
    }

    void withdrawAll() {
        promises.keySet().forEach(this::withdraw);
    }

    /// Ends what has lasted its time.
    void sweep(long now) {
        for (Promise first = pinned.peek(); first != null && first.untilNanos <= now; first = pinned.peek()) {
            pinned.remove();
            release(first);
            if (first.kept) {
                promises.remove(first.key, first);
            } else {
                remembered.add(first);
            }
        }
        // Bare promises and lapsed ones mix here, so a bare one may be remembered some moments too long.
        long end = now - PAUSE_MOMENTS * momentNanos;
        for (Promise first = remembered.peek(); first != null && first.untilNanos <= end; first = remembered.peek()) {
            remembered.remove();
            promises.remove(first.key, first);
        }
    }

    private void release(Promise promise) {
        ObjectView view = promise.take();
        if (view != null) {
            heldBytes.addAndGet(-promise.bytes);
            view.close();
        }
    }

    long heldBytes() {
        return heldBytes.get();
    }

    /// Answers that pinned a value.
    long given() {
        return given.sum();
    }

    /// Answers without a pin, for want of quota.
    long bare() {
        return bare.sum();
    }

    /// Answers that turned out wrong within their moment.
    long broken() {
        return broken.sum();
    }

    private static final class Promise {

        private final Key key;
        private final long bytes;
        private final long untilNanos;
        private volatile @Nullable ObjectView view;
        private volatile boolean kept;

        Promise(Key key, @Nullable ObjectView view, long bytes, long untilNanos) {
            this.key = key;
            this.view = view;
            this.bytes = bytes;
            this.untilNanos = untilNanos;
        }

        synchronized @Nullable ObjectView take() {
            ObjectView taken = view;
            view = null;
            return taken;
        }
    }
}
