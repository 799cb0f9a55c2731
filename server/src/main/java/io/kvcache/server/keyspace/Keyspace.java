package io.kvcache.server.keyspace;

import io.kvcache.core.Clock;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.quota.Quota;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Values by key, in one namespace of a store.
///
/// The store holds the bytes and decides what to evict. What it does not know is kept here: which keys there are
/// ([KeyIndex]), when they expire, which two belong together ([Halves]), who is writing ([Writings]), and what was
/// said to exist ([Promises]).
///
/// **Time.** Expiry goes by the wall clock, as clients give it; everything else by the store's clock. [#tick] does
/// what time brings; a value whose time is up is not found from that moment on, ticked or not.
///
/// **Threads.** Any. No method waits for more than a lock that is held for some milliseconds at most.
public final class Keyspace {

    /// Longest key.
    public static final int MAX_KEY_BYTES = KvCache.MAX_OBJECT_KEY_BYTES;

    /// Largest value: the store's largest object, less what is kept behind the value.
    public static final long MAX_VALUE_BYTES = KvCache.MAX_OBJECT_BYTES - Trailer.BYTES;

    /// Expired keys that one tick drops: some milliseconds.
    private static final int EXPIRE_AT_ONCE = 1000;

    private final KvCache cache;
    private final Namespace namespace;
    private final Clock clock;
    private final InstantSource wall;
    private final Bounds bounds;
    private final Quota quota;
    private final KeyIndex index;
    private final KeyLocks locks = new KeyLocks();
    private final Writings writings = new Writings();
    private final Promises promises;
    private final Removal removal;
    private final Lapses lapses;
    private final Adoption adoption;
    private final Strangers strangers;
    private final Allowance allowance;
    private final KeyFollower follower;
    private final KeyspaceCounters counters = new KeyspaceCounters();
    private final Departed departed = new Departed();
    private final Arrivals arrivals;
    private final RefusedHalves refusedHalves;
    private final Conditions conditions;
    private final Predecessors predecessors = new Predecessors();

    /// Registers the namespace.
    public Keyspace(KvCache cache, Namespace namespace, Clock clock, InstantSource wall, KeyspaceOptions options) {
        this.cache = cache;
        this.namespace = namespace;
        this.clock = clock;
        this.wall = wall;
        bounds = options.bounds();
        quota = new Quota(options.quotaBytes());
        Holdings holdings = new Holdings(quota);
        index = new KeyIndex(holdings);
        cache.register(namespace);
        promises = new Promises(options.promise().toNanos(), options.promiseBytes());
        removal = new Removal(cache, namespace, index, locks, promises, writings, departed);
        adoption = new Adoption(cache, namespace, index, locks);
        lapses = new Lapses(cache, namespace, index, removal, adoption, wall, counters);
        arrivals = new Arrivals(cache, namespace, options.arrival());
        strangers = new Strangers(cache.objects(namespace), index, locks, holdings);
        allowance = new Allowance(quota, holdings, options.bounds(), index, removal, strangers);
        follower = new KeyFollower(cache.events(), index, removal, strangers, counters.evicted);
        refusedHalves = new RefusedHalves(clock);
        conditions = new Conditions(cache, namespace, index, wall);
    }

    /// What all that the tenant has may take together.
    public Quota quota() {
        return quota;
    }

    /// How large keys and values may be.
    public Bounds bounds() {
        return bounds;
    }

    /// Milliseconds since the epoch, by the clock that values expire by.
    public long nowMillis() {
        return wall.millis();
    }

    /// Holds a value, or answers null: when there is none, when it [#isAway], when too much is on its way out.
    public @Nullable Value get(byte[] key) {
        return read(key).value();
    }

    /// As [#get], for who has to know why there is no value.
    public Reading read(byte[] key) {
        Key wanted = new Key(key);
        if (lapses.isGone(wanted)) {
            return Reading.NOTHING;
        }
        ObjectView view = cache.getObject(namespace, key);
        return view == null && arrivals.isAway(wanted) ? Reading.NOTHING : opened(wanted, view);
    }

    /// Whether a value is here, but not in host memory: [#fetch] brings it.
    public boolean isAway(byte[] key) {
        return arrivals.isAway(new Key(key));
    }

    /// Whether a key is here of which nothing is known but that: [#fetch] brings its value, and what is known with it.
    public boolean isStranger(byte[] key) {
        Key asked = new Key(key);
        return arrivals.isAway(asked) && index.find(hash(asked)) == null;
    }

    /// Brings a value into host memory and holds it.
    ///
    /// @param executor runs `then`, once; if it takes nothing any more, `then` is not run and nothing is held
    /// @param then gets the value, or none when it is gone or did not arrive in time
    public void fetch(byte[] key, Executor executor, Consumer<Reading> then) {
        Key wanted = new Key(key);
        arrivals.fetch(
                wanted,
                executor,
                view -> then.accept(lapses.isGone(wanted, view) ? Reading.NOTHING : arrived(wanted, view)));
    }

    private Reading arrived(Key wanted, @Nullable ObjectView view) {
        Reading reading = opened(wanted, view);
        Value value = reading.value();
        if (value != null && index.find(hash(wanted)) == null) {
            adoption.adopt(wanted, value);
        }
        return reading;
    }

    private Reading opened(Key wanted, @Nullable ObjectView view) {
        Value value = view == null ? null : Value.of(view);
        if (value == null) {
            counters.missed(departed.why(hash(wanted), index));
            promises.missed(wanted, clock.nanos());
            return Reading.NOTHING;
        }
        if (value.expiresAtMillis() != 0 && lapses.isGoneUnknown(wanted, value)) {
            value.close();
            return Reading.NOTHING;
        }
        if (!value.leaves(bounds.leaving())) {
            value.close();
            counters.busy.increment();
            promises.missed(wanted, clock.nanos());
            return Reading.BUSY;
        }
        counters.hits.increment();
        counters.sentBytes.add(value.bytes());
        promises.kept(wanted);
        allowance.used(wanted, namespace);
        return Reading.of(value);
    }

    /// Whether a key is here; if so, it is kept here for a moment, with its other half.
    public boolean exists(byte[] key) {
        Key wanted = new Key(key);
        if (promises.holds(wanted)) {
            return !lapses.isGone(wanted);
        }
        if (!contains(wanted)) {
            return false;
        }
        promises.promise(wanted, cache, namespace, clock.nanos());
        byte[] other = Halves.other(key);
        if (other != null) {
            promises.promise(new Key(other), cache, namespace, clock.nanos());
        }
        return true;
    }

    /// Whether a key has a value of this size and note already; if so, it counts as used now, but not as read.
    ///
    /// Where a key is a digest of content, that is the same value.
    public boolean holds(byte[] key, long bytes, TensorNote note) {
        ObjectView view = lapses.isGone(new Key(key)) ? null : cache.getObject(namespace, key);
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

    /// Whether a key is here; if so, it counts as used now. Promises nothing.
    public boolean touch(byte[] key) {
        try (Value value = get(key)) {
            return value != null || isAway(key);
        }
    }

    /// Follows the requests of one connection, to learn which keys belong together.
    public KeyRun newRun() {
        return new KeyRun(this, predecessors, (key, after) -> cache.followObject(namespace, key, after));
    }

    /// Size and expiry of a key, or null when it is not here.
    public @Nullable KeyInfo info(byte[] key) {
        Key wanted = new Key(key);
        if (!contains(wanted)) {
            return null;
        }
        KeyEntry known = index.find(hash(wanted));
        KeyEntry entry = known == null ? adoption.adopt(wanted) : known;
        return entry == null ? null : new KeyInfo(entry.bytes(), entry.expiresAtMillis());
    }

    private boolean contains(Key key) {
        return !lapses.isGone(key) && cache.containsObject(namespace, key.bytes());
    }

    /// Begins to write a value that nobody is known to read after another.
    public PendingPut put(byte[] key, long bytes) {
        return put(key, bytes, null);
    }

    /// Begins to write a value.
    ///
    /// @param key 1 to [#MAX_KEY_BYTES] bytes; belongs to the keyspace from now on
    /// @param bytes 0 to [#MAX_VALUE_BYTES]
    /// @param after the key that readers take before this one, which is not evicted earlier; null for none
    public PendingPut put(byte[] key, long bytes, byte @Nullable [] after) {
        Key wanted = new Key(key);
        byte[] other = Halves.other(key);
        if (other != null && refusedHalves.has(new Key(other))) {
            return refused(wanted, bytes);
        }
        Writings.Writing writing = writings.begin(wanted);
        if (writing == null) {
            counters.joined.increment();
            return PendingPut.without(this, wanted, bytes, PendingPut.State.JOINED);
        }
        Writings.Claim claim = allowance.claim(writing, wanted, bytes);
        if (claim != null) {
            ObjectWriter writer = cache.putObject(namespace, key, after, bytes + Trailer.BYTES, KvCache.NO_WAIT);
            if (writer.outcome() == PutOutcome.RESERVED) {
                return PendingPut.writing(this, wanted, bytes, claim, writer);
            }
            writer.close();
            claim.release();
        }
        writing.end();
        if (other != null) {
            refusedHalves.add(wanted);
            delete(other);
        }
        return refused(wanted, bytes);
    }

    private PendingPut refused(Key key, long bytes) {
        counters.refused.increment();
        return PendingPut.without(this, key, bytes, PendingPut.State.REFUSED);
    }

    boolean commit(Key key, ObjectWriter writer, KeyInfo info, PendingPut.Condition condition) {
        BlockKey hash = hash(key);
        ReentrantLock lock = locks.of(hash);
        lock.lock();
        try {
            if (!conditions.hold(key, hash, condition)) {
                return false;
            }
            if (writer.seal() == SealOutcome.SEALED) {
                KeyEntry entry = new KeyEntry(key, hash, info.bytes(), info.expiresAtMillis());
                index.put(entry);
                adoption.pair(entry);
            }
        } finally {
            lock.unlock();
        }
        counters.stored.increment();
        counters.receivedBytes.add(info.bytes());
        promises.withdraw(key);
        if (Halves.other(key.bytes()) != null) {
            refusedHalves.forget(key);
        }
        return true;
    }

    void afterWriting(Key key, Runnable after) {
        writings.join(key, after);
    }

    /// Forgets a key; answers whether it was here.
    public boolean delete(byte[] key) {
        Key wanted = new Key(key);
        boolean gone = lapses.isGone(wanted);
        if (!removal.drop(wanted, Departed.Cause.DELETED) || gone) {
            return false;
        }
        counters.deleted.increment();
        return true;
    }

    /// Lets a key expire at a time; answers whether the key is here.
    ///
    /// @param atMillis milliseconds since the epoch, or 0 for never
    public boolean expireAt(byte[] key, long atMillis) {
        Key wanted = new Key(key);
        if (info(key) == null) {
            return false;
        }
        BlockKey hash = hash(wanted);
        ReentrantLock lock = locks.of(hash);
        lock.lock();
        try {
            KeyEntry entry = index.find(hash);
            if (entry != null) {
                index.expireAt(entry, atMillis);
            }
            return entry != null;
        } finally {
            lock.unlock();
        }
    }

    /// Keys here now.
    public long count() {
        tick();
        return index.count();
    }

    /// A run of the listing of keys. A key that is there from the first run to the last is listed at least once.
    ///
    /// @param cursor 0 to begin, else what the run before answered
    public KeyPage scan(long cursor, int max) {
        if (cursor == 0) {
            tick();
        }
        long now = nowMillis();
        KeyIndex.Run run = index.run(cursor, max);
        List<byte[]> keys = new ArrayList<>(run.entries().size());
        for (KeyEntry entry : run.entries()) {
            if (!entry.expired(now)) {
                keys.add(entry.key().bytes().clone());
            }
        }
        return new KeyPage(keys, run.next());
    }

    /// Forgets all keys; answers how many.
    public long clear() {
        promises.withdrawAll();
        long dropped = cache.drop(namespace);
        follower.follow(Integer.MAX_VALUE);
        return dropped;
    }

    /// Does what time brings, a bounded part at a time: drops what has expired, hears what was evicted, ends promises.
    public void tick() {
        promises.sweep(clock.nanos());
        follower.follow(16);
        long now = nowMillis();
        for (KeyEntry entry : index.expired(now, EXPIRE_AT_ONCE)) {
            removal.expire(entry, now);
        }
    }

    /// The store has told all that it had on disk: that counts for the quota from now on.
    public void recovered() {
        strangers.find();
    }

    /// Ends all promises, so that the store can be closed.
    public void release() {
        promises.withdrawAll();
    }

    /// What is here and what was done.
    public KeyspaceStats stats() {
        return counters.stats(index, promises, bounds, allowance.usage());
    }

    private BlockKey hash(Key key) {
        return key.digest(namespace);
    }
}
