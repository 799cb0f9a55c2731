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
/// fetched in vain within the moment. Of a value that is on disk alone it is only remembered that it was asked for.
///
/// An answer and the fetch that follows it are one look-up: [#kept] says which fetch follows one.
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
    private final LongAdder kept = new LongAdder();

    /// @param momentNanos how long a promise holds; 0 for no promises
    /// @param quotaBytes most that may be pinned by promises
    Promises(long momentNanos, long quotaBytes) {
        this.momentNanos = momentNanos;
        this.quotaBytes = quotaBytes;
    }

    /// Whether the key is pinned by a promise, and so is there. It is asked for once more if so.
    boolean holds(Key key) {
        Promise promise = promises.get(key);
        if (promise == null || promise.view == null) {
            return false;
        }
        promise.asked = true;
        return true;
    }

    /// Whether the key is promised, or was not long ago, so that there is no new promise to give.
    boolean remembers(Key key) {
        return promises.containsKey(key);
    }

    /// Promises a key that is here, unless it is promised or was not long ago.
    void promise(Key key, KvCache cache, Namespace namespace, long now) {
        Promise known = promises.get(key);
        if (known != null) {
            known.asked = true;
            if (!known.away) {
                return;
            }
        }
        ObjectView view = cache.holdObject(namespace, key.bytes());
        if (view == null && known == null) {
            rememberAway(key, now);
        } else if (view != null) {
            if (known != null) {
                promises.remove(key, known);
            }
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
        Promise promise = new Promise(key, pins ? view : null, bytes, now + momentNanos, false);
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

    private void rememberAway(Key key, long now) {
        if (momentNanos > 0 && promises.size() < MOST) {
            Promise away = new Promise(key, null, 0, now + momentNanos, true);
            if (promises.putIfAbsent(key, away) == null) {
                remembered.add(away);
            }
        }
    }

    /// The key was fetched.
    ///
    /// @return whether that follows an answer that no other fetch has followed yet
    boolean kept(Key key) {
        Promise promise = promises.get(key);
        if (promise == null) {
            return false;
        }
        promise.kept = true;
        boolean follows = promise.asked;
        if (follows) {
            promise.asked = false;
            kept.increment();
        }
        return follows;
    }

    /// The key was asked for and not found.
    void missed(Key key, long now) {
        Promise promise = promises.get(key);
        if (promise != null && !promise.away && now < promise.untilNanos && promises.remove(key, promise)) {
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

    /// Fetches that followed a positive answer: with it they are one look-up.
    long kept() {
        return kept.sum();
    }

    private static final class Promise {

        private final Key key;
        private final long bytes;
        private final long untilNanos;

        /// The value was on disk alone: nothing is promised.
        private final boolean away;

        private volatile @Nullable ObjectView view;
        private volatile boolean kept;

        /// There was an answer that no fetch has followed yet.
        private volatile boolean asked = true;

        Promise(Key key, @Nullable ObjectView view, long bytes, long untilNanos, boolean away) {
            this.away = away;
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
