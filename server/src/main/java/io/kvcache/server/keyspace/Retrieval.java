package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.miss.Departed;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// How values are found and held, and what a miss is put down to.
///
/// **Threads.** Any.
final class Retrieval {

    private final Ground ground;
    private final Bounds bounds;
    private final Arrivals arrivals;
    private final Lapses lapses;
    private final Adoption adoption;
    private final Allowance allowance;

    Retrieval(Ground ground, Bounds bounds, Arrivals arrivals, Lapses lapses, Adoption adoption, Allowance allowance) {
        this.ground = ground;
        this.bounds = bounds;
        this.arrivals = arrivals;
        this.lapses = lapses;
        this.adoption = adoption;
        this.allowance = allowance;
    }

    /// Holds a value that is in host memory. One that is away is no miss yet.
    Reading read(Key wanted) {
        if (lapses.isGone(wanted)) {
            return Reading.NOTHING;
        }
        ObjectView view = ground.cache().getObject(ground.namespace(), wanted.bytes());
        return view == null && arrivals.isAway(wanted) ? Reading.AWAY : opened(wanted, view);
    }

    /// Brings a value into host memory and holds it.
    ///
    /// @param mostNanos how long it may take, if the store allows as long
    void fetch(Key wanted, long mostNanos, Executor executor, Consumer<Reading> then) {
        arrivals.fetch(
                wanted,
                mostNanos,
                executor,
                view -> then.accept(lapses.isGone(wanted, view) ? Reading.NOTHING : arrived(wanted, view)));
    }

    boolean isAway(Key wanted) {
        return arrivals.isAway(wanted);
    }

    /// Bytes of a value that is on disk alone, as far as they are known.
    long awayBytes(Key key) {
        KeyEntry entry = ground.index().find(ground.hash(key));
        if (entry == null || !arrivals.isAway(key)) {
            return 0;
        }
        try (ObjectView resident = ground.cache().holdObject(ground.namespace(), key.bytes())) {
            return resident == null ? entry.bytes() : 0;
        }
    }

    private Reading arrived(Key wanted, @Nullable ObjectView view) {
        if (view == null && arrivals.isAway(wanted)) {
            ground.counters().late.increment();
            ground.promises().missed(wanted, ground.clock().nanos());
            return Reading.LATE;
        }
        Reading reading = opened(wanted, view);
        Value value = reading.value();
        if (value != null) {
            ground.counters().fromDisk.increment();
        }
        if (value != null && ground.index().find(ground.hash(wanted)) == null) {
            adoption.adopt(wanted, value);
        }
        return reading;
    }

    private Reading opened(Key wanted, @Nullable ObjectView view) {
        Value value = view == null ? null : Value.of(view);
        if (value == null) {
            ground.counters().missed(why(ground.hash(wanted)));
            ground.promises().missed(wanted, ground.clock().nanos());
            return Reading.NOTHING;
        }
        if (value.expiresAtMillis() != 0 && lapses.isGoneUnknown(wanted, value)) {
            value.close();
            return Reading.NOTHING;
        }
        if (!value.leaves(bounds.leaving())) {
            value.close();
            ground.counters().busy.increment();
            ground.promises().missed(wanted, ground.clock().nanos());
            return Reading.BUSY;
        }
        if (!ground.promises().kept(wanted)) {
            ground.counters().hits.increment();
        }
        ground.counters().sentBytes.add(value.bytes());
        allowance.used(wanted, ground.namespace());
        return Reading.of(value);
    }

    /// One that is still listed was evicted a moment ago.
    private Departed.Cause why(BlockKey hash) {
        return ground.index().find(hash) == null ? ground.departed().why(hash) : Departed.Cause.EVICTED;
    }

    /// Whether a key is here and may be said to be; if so, it is kept here for a moment, with its other half. Counts a
    /// miss, and leaves a hit to the caller, who may not tell of it.
    boolean exists(Key wanted) {
        if (lapses.isGone(wanted)) {
            return false;
        }
        boolean here = promises().renew(wanted, now()) || (ground.stores(wanted) && promise(wanted));
        byte[] other = here ? Halves.other(wanted.bytes()) : null;
        if (other != null) {
            Key half = new Key(other);
            here = told(half) || !ground.stores(half);
        }
        if (!here) { // One that cannot be kept counts as evicted too: there is too little memory for it.
            ground.counters().missed(why(ground.hash(wanted)));
        }
        return here;
    }

    /// A client is about to be told that a key is here, in another way than by [#exists]; answers whether it may be.
    boolean told(Key key) {
        return promises().renew(key, now()) || promise(key);
    }

    private Promises promises() {
        return ground.promises();
    }

    private long now() {
        return ground.clock().nanos();
    }

    private boolean promise(Key key) {
        return promises().promise(key, ground.cache(), ground.namespace(), now());
    }

    /// Whether a key has a value of this size and note already; if so, it counts as used now, but not as read.
    boolean holds(Key wanted, long bytes, TensorNote note) {
        ObjectView view = lapses.isGone(wanted) ? null : ground.cache().getObject(ground.namespace(), wanted.bytes());
        Value value = view == null ? null : Value.of(view);
        if (value == null) {
            return false;
        }
        try (value) {
            return value.bytes() == bytes
                    && value.expiresAtMillis() == 0
                    && value.note().describesSame(note);
        }
    }

    /// Size and expiry of a key, or null when it is not here.
    @Nullable
    KeyInfo info(Key wanted) {
        if (!contains(wanted)) {
            return null;
        }
        KeyEntry known = ground.index().find(ground.hash(wanted));
        KeyEntry entry = known == null ? adoption.adopt(wanted) : known;
        return entry == null ? null : new KeyInfo(entry.bytes(), entry.expiresAtMillis());
    }

    private boolean contains(Key key) {
        return !lapses.isGone(key) && ground.stores(key);
    }
}
