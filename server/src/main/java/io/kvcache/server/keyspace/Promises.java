package io.kvcache.server.keyspace;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.Namespace;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Keeps what was said to exist from being evicted before the client that asked can fetch it: LMCache's native client
/// never returns from a fetch that misses after a yes.
///
/// A positive answer pins the value for a moment, within a quota of bytes. Asking again prolongs the pin. A value that
/// was fetched as often as it was asked for stays pinned to the end of its moment too, but goes first when the quota
/// is full. What is on disk alone is not pinned: it is only remembered that it was asked for.
///
/// An answer and the fetch that follows it are one look-up: [#kept] says which fetch follows one.
///
/// **Beyond the quota** the store's state decides. While it evicts, the answer is no: a client computes what it is not
/// told of, which is better than a yes that breaks. While nothing was evicted for a moment, the answer is yes without
/// a pin (*bare*), so that a client that only counts keys hears the truth. A bare yes is broken if the store begins
/// to evict at once and takes this very value; that is counted.
///
/// **Bound.** [#MOST] keys are promised at one time, at most the quota's bytes. So clients that ask and never fetch
/// keep the quota from eviction, and nothing more.
///
/// **Threads.** Any.
final class Promises {

    /// Some 10 MB of heap when all are taken; two seconds of 30,000 positive answers a second.
    static final int MOST = 1 << 16;

    private final long momentNanos;
    private final long quotaBytes;
    private final ConcurrentHashMap<Key, Promise> promises = new ConcurrentHashMap<>();
    private final Queue<Promise> byTime = new ConcurrentLinkedQueue<>();
    private final Queue<Promise> fetched = new ConcurrentLinkedQueue<>();
    private final AtomicLong heldBytes = new AtomicLong();
    private final LongAdder given = new LongAdder();
    private final LongAdder bare = new LongAdder();
    private final LongAdder declined = new LongAdder();
    private final LongAdder broken = new LongAdder();
    private final LongAdder kept = new LongAdder();

    /// Entries of [#byTime], also of promises that are over.
    private final AtomicInteger timed = new AtomicInteger();

    private volatile boolean evicts;

    /// Read and written by [#sweep].
    private long lastPressure;

    /// Read and written by [#sweep].
    private long pressedAtNanos;

    /// @param momentNanos how long a promise holds; 0 for no promises
    /// @param quotaBytes most that may be pinned by promises; 0 for no promises
    Promises(long momentNanos, long quotaBytes) {
        this.momentNanos = momentNanos;
        this.quotaBytes = quotaBytes;
    }

    /// Whether the key is pinned by a promise.
    boolean holds(Key key) {
        Promise promise = promises.get(key);
        return promise != null && promise.isHeld();
    }

    /// Prolongs the promise of a key that is pinned already.
    ///
    /// @return whether it is
    boolean renew(Key key, long now) {
        Promise promise = promises.get(key);
        return promise != null && promise.ask(now + momentNanos);
    }

    /// Promises a key that [#renew] did not.
    ///
    /// @return whether it may be said to be here
    boolean promise(Key key, KvCache cache, Namespace namespace, long now) {
        ObjectView view = momentNanos == 0 ? null : cache.holdObject(namespace, key.bytes());
        if (view == null) {
            boolean away = cache.containsObject(namespace, key.bytes()); // on disk alone, or gone this moment
            if (away) {
                remember(key, now, true);
            }
            return away;
        }
        if (!keep(key, view, now + momentNanos)) {
            return isSaidBare(key, now);
        }
        if (cache.containsObject(namespace, key.bytes())) {
            return true;
        }
        withdraw(key); // Deleted meanwhile, by a caller that saw no promise to withdraw.
        return false;
    }

    /// Takes over a view and keeps it open as long as a promise lasts; closes it when there is no room for one.
    ///
    /// @return whether the key is pinned
    private boolean keep(Key key, ObjectView view, long untilNanos) {
        long bytes = view.bytes();
        if (promises.size() >= MOST || timed.get() >= 2 * MOST || !takesRoom(bytes)) {
            view.close();
            return false;
        }
        Promise promise = new Promise(key, view, bytes, untilNanos, false);
        Promise before = promises.putIfAbsent(key, promise);
        while (before != null) {
            if (before.ask(untilNanos)) {
                release(promise); // another caller has pinned it
                return true;
            }
            before = promises.replace(key, before, promise) ? null : promises.putIfAbsent(key, promise);
        }
        given.increment();
        queue(promise);
        return true;
    }

    /// Adds bytes to what is held, in place of what was fetched already if need be.
    private boolean takesRoom(long bytes) {
        while (heldBytes.addAndGet(bytes) > quotaBytes) {
            heldBytes.addAndGet(-bytes);
            Promise done = fetched.poll();
            if (done == null) {
                return false;
            }
            if (done.isStillFetched() && promises.remove(done.key, done)) {
                release(done);
            }
        }
        return true;
    }

    private boolean isSaidBare(Key key, long now) {
        if (evicts && quotaBytes > 0) {
            declined.increment();
            return false;
        }
        bare.increment();
        remember(key, now, false);
        return true;
    }

    /// Remembers that a key was asked for which is not pinned.
    private void remember(Key key, long now, boolean away) {
        if (momentNanos > 0 && promises.size() < MOST && timed.get() < 2 * MOST) {
            Promise unpinned = new Promise(key, null, 0, now + momentNanos, away);
            if (promises.putIfAbsent(key, unpinned) == null) {
                queue(unpinned);
            }
        }
    }

    private void queue(Promise promise) {
        timed.incrementAndGet();
        byTime.add(promise);
    }

    /// The key was fetched.
    ///
    /// @return whether that follows an answer that no other fetch has followed yet
    boolean kept(Key key) {
        Promise promise = promises.get(key);
        if (promise == null || !promise.fetch()) {
            return false;
        }
        kept.increment();
        if (promise.joins()) {
            fetched.add(promise);
        }
        return true;
    }

    /// The key was asked for and not found.
    void missed(Key key, long now) {
        Promise promise = promises.get(key);
        if (promise != null && !promise.away && now < promise.untilNanos() && promises.remove(key, promise)) {
            broken.increment();
            release(promise);
        }
    }

    /// The value was replaced by its owner: the promise holds for the new one.
    void replaced(Key key, KvCache cache, Namespace namespace, long now) {
        Promise promise = promises.get(key);
        if (promise == null || !promises.remove(key, promise)) {
            return;
        }
        long until = promise.untilNanos();
        release(promise);
        ObjectView view = now < until ? cache.holdObject(namespace, key.bytes()) : null;
        if (view != null) {
            var _ = keep(key, view, until);
        }
    }

    /// The value was deleted by its owner: nothing is promised any more.
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
    ///
    /// @param pressure grows when the store evicts, or refuses a write for want of room
    synchronized void sweep(long now, long pressure) {
        if (pressure != lastPressure) {
            lastPressure = pressure;
            pressedAtNanos = now;
            evicts = true;
        } else if (evicts && now - pressedAtNanos >= momentNanos) {
            evicts = false;
        }
        Promise first = byTime.peek();
        while (first != null && first.dueNanos <= now) {
            byTime.remove();
            if (first.isOver(now)) {
                timed.decrementAndGet();
                promises.remove(first.key, first);
                release(first);
            } else {
                first.dueNanos = first.untilNanos(); // It was prolonged. What stands before it then may end late.
                byTime.add(first);
            }
            first = byTime.peek();
        }
        for (Promise done = fetched.peek(); done != null && !done.isHeld(); done = fetched.peek()) {
            fetched.remove(done);
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

    /// Positive answers without a pin, for want of quota.
    long bare() {
        return bare.sum();
    }

    /// Values that are here and were said not to be, for want of quota.
    long declined() {
        return declined.sum();
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

        /// The value was on disk alone: nothing is promised.
        private final boolean away;

        private @Nullable ObjectView view;
        private long untilNanos;

        /// Answers that were not followed by a fetch yet.
        private int asked = 1;

        /// Whether it waits in [#fetched].
        private boolean queued;

        /// When it is looked at; of the sweep.
        private long dueNanos;

        Promise(Key key, @Nullable ObjectView view, long bytes, long untilNanos, boolean away) {
            this.key = key;
            this.away = away;
            this.view = view;
            this.bytes = bytes;
            this.untilNanos = untilNanos;
            dueNanos = untilNanos;
        }

        synchronized boolean isHeld() {
            return view != null;
        }

        synchronized long untilNanos() {
            return untilNanos;
        }

        /// Counts another request; answers whether the key is pinned, and so prolonged.
        synchronized boolean ask(long until) {
            asked++;
            untilNanos = Math.max(untilNanos, until);
            return view != null;
        }

        /// Answers whether it was asked for more often than fetched.
        synchronized boolean fetch() {
            boolean follows = asked > 0;
            asked -= follows ? 1 : 0;
            return follows;
        }

        /// Whether it is to be queued, as it was fetched as often as asked for.
        synchronized boolean joins() {
            boolean joins = view != null && asked == 0 && !queued;
            queued |= joins;
            return joins;
        }

        /// It has left the queue; answers whether no request came since.
        synchronized boolean isStillFetched() {
            queued = false;
            return asked == 0;
        }

        synchronized boolean isOver(long now) {
            return untilNanos <= now;
        }

        synchronized @Nullable ObjectView take() {
            ObjectView taken = view;
            view = null;
            return taken;
        }
    }
}
