package io.kvcache.server.keyspace;

import io.kvcache.core.LocalKvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.keyspace.KeyspaceStats.KeyspaceCounters;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// Keeps what was said to exist from being evicted before the client that asked can fetch it: LMCache's native
/// client never returns from a fetch that misses after a yes.
///
/// A positive answer pins the value for a moment, within a quota of bytes. Asking again prolongs the pin. A value
/// that was fetched as often as it was asked for stays pinned to the end of its moment too, but goes first when
/// the quota is full. What is on disk alone is not pinned: it is only remembered that it was asked for.
///
/// An answer and the fetch that follows it are one look-up: [#fulfilled] says which fetch follows one.
///
/// **Beyond the quota** the store's state decides. While it evicts, the answer is no: a client computes what it is
/// not told of, which is better than a yes that breaks. While nothing was evicted for a moment, the answer is yes
/// without a pin (*bare*), so that a client that only counts keys hears the truth. A bare yes is broken if the
/// store begins to evict at once and takes this very value; that is counted.
///
/// **Bound.** [#MAX_PINS] keys are promised at one time, at most the quota's bytes. So clients that ask and never
/// fetch keep the quota from eviction, and nothing more.
///
/// **Threads.** Any.
final class ExistsPins {

    /// Some 10 MB of heap when all are taken; two seconds of 30,000 positive answers a second.
    static final int MAX_PINS = 1 << 16;

    private final long pinNanos;
    private final long quotaBytes;
    private final ConcurrentHashMap<ObjectKey, ExistsPin> promises = new ConcurrentHashMap<>();
    private final Queue<ExistsPin> byTime = new ConcurrentLinkedQueue<>();
    private final Queue<ExistsPin> fetched = new ConcurrentLinkedQueue<>();
    private final AtomicLong heldBytes = new AtomicLong();

    private final KeyspaceCounters counters;

    private volatile boolean evicts;

    /// Read and written by [#sweep].
    private long lastPressure;

    /// Read and written by [#sweep].
    private long pressedAtNanos;

    /// @param momentNanos how long a promise holds; 0 for no promises
    /// @param quotaBytes most that may be pinned by promises; 0 for no promises
    ExistsPins(long momentNanos, long quotaBytes, KeyspaceCounters counters) {
        this.pinNanos = momentNanos;
        this.quotaBytes = quotaBytes;
        this.counters = counters;
    }

    /// Returns whether the key is pinned by a promise.
    boolean isPinned(ObjectKey key) {
        ExistsPin existsPin = promises.get(key);
        return existsPin != null && existsPin.isHeld();
    }

    /// Prolongs the promise of a key that is pinned already.
    ///
    /// @return whether it is
    boolean renew(ObjectKey key, long now) {
        ExistsPin existsPin = promises.get(key);
        return existsPin != null && existsPin.recordExists(now + pinNanos);
    }

    /// Promises a key that [#renew] did not.
    ///
    /// @return whether it may be said to be here
    boolean grant(ObjectKey key, LocalKvCache cache, Namespace namespace, long now) {
        ObjectView view = pinNanos == 0 ? null : cache.holdObject(namespace, key.bytes());
        if (view == null) {
            boolean onDisk = cache.containsObject(namespace, key.bytes()); // on disk alone, or gone this moment
            if (onDisk) {
                recordUnpinned(key, now, true);
            }
            return onDisk;
        }
        if (!holdView(key, view, now + pinNanos)) {
            return isUnpinnedKnown(key, now);
        }
        if (cache.containsObject(namespace, key.bytes())) {
            return true;
        }
        revoke(key); // Deleted meanwhile, by a caller that saw no promise to withdraw.
        return false;
    }

    /// Takes over a view and keeps it open as long as a promise lasts; closes it when there is no room for one.
    ///
    /// @return whether the key is pinned
    private boolean holdView(ObjectKey key, ObjectView view, long untilNanos) {
        long bytes = view.bytes();
        if (promises.size() >= MAX_PINS || counters.existsAnswers.get() >= 2 * MAX_PINS || !reserveBytes(bytes)) {
            view.close();
            return false;
        }
        ExistsPin existsPin = new ExistsPin(key, view, bytes, untilNanos, false);
        counters.existsAnswers.incrementAndGet(); // first, as a reader that sees none does not look for a promise
        ExistsPin before = promises.putIfAbsent(key, existsPin);
        while (before != null) {
            if (before.recordExists(untilNanos)) {
                counters.existsAnswers.decrementAndGet();
                release(existsPin); // another caller has pinned it
                return true;
            }
            before = promises.replace(key, before, existsPin) ? null : promises.putIfAbsent(key, existsPin);
        }
        counters.existsGranted.increment();
        byTime.add(existsPin);
        return true;
    }

    /// Adds bytes to what is held, in place of what was fetched already if need be.
    private boolean reserveBytes(long bytes) {
        while (heldBytes.addAndGet(bytes) > quotaBytes) {
            heldBytes.addAndGet(-bytes);
            ExistsPin done = fetched.poll();
            if (done == null) {
                return false;
            }
            if (done.dequeueIfFetched() && promises.remove(done.key, done)) {
                release(done);
            }
        }
        return true;
    }

    private boolean isUnpinnedKnown(ObjectKey key, long now) {
        if (evicts && quotaBytes > 0) {
            counters.existsDeclined.increment();
            return false;
        }
        counters.existsUnpinned.increment();
        recordUnpinned(key, now, false);
        return true;
    }

    /// Remembers that a key was asked for which is not pinned.
    private void recordUnpinned(ObjectKey key, long now, boolean onDisk) {
        if (pinNanos > 0 && promises.size() < MAX_PINS && counters.existsAnswers.get() < 2 * MAX_PINS) {
            ExistsPin unpinned = new ExistsPin(key, null, 0, now + pinNanos, onDisk);
            counters.existsAnswers.incrementAndGet();
            if (promises.putIfAbsent(key, unpinned) == null) {
                byTime.add(unpinned);
            } else {
                counters.existsAnswers.decrementAndGet();
            }
        }
    }

    /// The key was fetched.
    ///
    /// @return whether that follows an answer that no other fetch has followed yet
    boolean fulfilled(ObjectKey key) {
        ExistsPin existsPin = promises.get(key);
        if (existsPin == null || !existsPin.recordFetch()) {
            return false;
        }
        counters.existsFulfilled.increment();
        if (existsPin.shouldEnqueue()) {
            fetched.add(existsPin);
        }
        return true;
    }

    /// The key was asked for and not found.
    void onMiss(ObjectKey key, long now) {
        ExistsPin existsPin = promises.get(key);
        if (existsPin != null && !existsPin.onDisk && now < existsPin.untilNanos() && promises.remove(key, existsPin)) {
            counters.existsViolated.increment();
            release(existsPin);
        }
    }

    /// The value was replaced by its owner: the promise holds for the new one.
    void onReplaced(ObjectKey key, LocalKvCache cache, Namespace namespace, long now) {
        ExistsPin existsPin = promises.get(key);
        if (existsPin == null || !promises.remove(key, existsPin)) {
            return;
        }
        long until = existsPin.untilNanos();
        release(existsPin);
        ObjectView view = now < until ? cache.holdObject(namespace, key.bytes()) : null;
        if (view != null) {
            var _ = holdView(key, view, until);
        }
    }

    /// The value was deleted by its owner: nothing is promised any more.
    void revoke(ObjectKey key) {
        ExistsPin existsPin = promises.remove(key);
        if (existsPin != null) {
            release(existsPin);
        }
    }

    void revokeAll() {
        promises.keySet().forEach(this::revoke);
    }

    /// Ends the pins whose time is over.
    synchronized void sweep(long now) {
        long pressure = counters.evictionPressure();
        if (pressure != lastPressure) {
            lastPressure = pressure;
            pressedAtNanos = now;
            evicts = true;
        } else if (evicts && now - pressedAtNanos >= pinNanos) {
            evicts = false;
        }
        ExistsPin first = byTime.peek();
        while (first != null && first.dueNanos <= now) {
            byTime.remove();
            if (first.isExpired(now)) {
                counters.existsAnswers.decrementAndGet();
                promises.remove(first.key, first);
                release(first);
            } else {
                first.dueNanos = first.untilNanos(); // It was prolonged. What stands before it then may end late.
                byTime.add(first);
            }
            first = byTime.peek();
        }
        for (ExistsPin done = fetched.peek(); done != null && !done.isHeld(); done = fetched.peek()) {
            fetched.remove(done);
        }
    }

    private void release(ExistsPin existsPin) {
        ObjectView view = existsPin.takeView();
        if (view != null) {
            heldBytes.addAndGet(-existsPin.bytes);
            view.close();
        }
    }

    long heldBytes() {
        return heldBytes.get();
    }

    private static final class ExistsPin {

        private final ObjectKey key;
        private final long bytes;

        /// The value was on disk alone: nothing is promised.
        private final boolean onDisk;

        private @Nullable ObjectView view;
        private long untilNanos;

        /// Answers that were not followed by a fetch yet.
        private int existsCount = 1;

        /// Whether it waits in [#fetched].
        private boolean queued;

        /// When it is looked at; of the sweep.
        private long dueNanos;

        ExistsPin(ObjectKey key, @Nullable ObjectView view, long bytes, long untilNanos, boolean onDisk) {
            this.key = key;
            this.onDisk = onDisk;
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
        synchronized boolean recordExists(long until) {
            existsCount++;
            untilNanos = Math.max(untilNanos, until);
            return view != null;
        }

        /// Answers whether it was asked for more often than fetched.
        synchronized boolean recordFetch() {
            boolean follows = existsCount > 0;
            existsCount -= follows ? 1 : 0;
            return follows;
        }

        /// Returns whether it is to be queued, as it was fetched as often as asked for.
        synchronized boolean shouldEnqueue() {
            boolean joins = view != null && existsCount == 0 && !queued;
            queued |= joins;
            return joins;
        }

        /// It has left the queue; answers whether no request came since.
        synchronized boolean dequeueIfFetched() {
            queued = false;
            return existsCount == 0;
        }

        synchronized boolean isExpired(long now) {
            return untilNanos <= now;
        }

        synchronized @Nullable ObjectView takeView() {
            ObjectView taken = view;
            view = null;
            return taken;
        }
    }
}
