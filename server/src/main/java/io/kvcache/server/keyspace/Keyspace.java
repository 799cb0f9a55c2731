package io.kvcache.server.keyspace;

import io.kvcache.core.Clock;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.miss.Departed;
import io.kvcache.server.quota.Quota;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Values by key, in one namespace of a store.
///
/// The store holds the bytes and decides what to evict. What it does not know is kept here: which keys there are
/// ([KeyIndex]), when they expire, which two belong together ([Halves]), who is writing ([Writings]), and what was
/// said to exist ([Promises]). [Retrieval] finds values, [Changes] puts and removes them.
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

    private final Ground ground;
    private final Bounds bounds;
    private final Quota quota;
    private final Retrieval retrieval;
    private final Changes changes;
    private final Removal removal;
    private final Strangers strangers;
    private final Allowance allowance;
    private final KeyHints hints;
    private final KeyFollower follower;
    private final Predecessors predecessors = new Predecessors();
    private final @Nullable Ahead ahead;
    private final @Nullable PrefillTerms terms;

    /// Registers the namespace.
    public Keyspace(KvCache cache, Namespace namespace, Clock clock, InstantSource wall, KeyspaceOptions options) {
        bounds = options.bounds();
        quota = new Quota(options.quotaBytes());
        Holdings holdings = new Holdings(quota);
        KeyIndex index = new KeyIndex(holdings);
        KeyLocks locks = new KeyLocks();
        Promises promises = new Promises(options.promise().toNanos(), options.promisedAtMost());
        KeyspaceCounters counters = new KeyspaceCounters();
        ground = new Ground(cache, namespace, clock, wall, index, locks, promises, new Departed(), counters);
        cache.register(namespace);
        Writings writings = new Writings();
        removal = new Removal(ground, writings);
        Adoption adoption = new Adoption(ground);
        Lapses lapses = new Lapses(ground, removal, adoption);
        strangers = new Strangers(cache.objects(namespace), index, locks, holdings);
        allowance = new Allowance(quota, holdings, bounds, index, removal, strangers, clock);
        hints = new KeyHints(ground, allowance, adoption);
        follower = new KeyFollower(cache.events().withoutObjectPuts(), index, removal, strangers, counters.evicted);
        Arrivals arrivals = new Arrivals(ground, options.arrival());
        retrieval = new Retrieval(ground, bounds, arrivals, lapses, adoption, allowance);
        changes = new Changes(ground, writings, allowance, lapses, removal, adoption);
        terms = options.prefill();
        ahead = options.ahead() ? new Ahead(key -> cache.prefetchObject(namespace, key)) : null;
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
        return ground.wall().millis();
    }

    /// Holds a value, or answers null: when there is none, when it [#isAway], when too much is on its way out.
    public @Nullable Value get(byte[] key) {
        return read(key).value();
    }

    /// As [#get], for who has to know why there is no value. One that is away is counted when it is fetched.
    public Reading read(byte[] key) {
        return retrieval.read(new Key(key));
    }

    /// Whether a value is here, but not in host memory: [#fetch] brings it.
    public boolean isAway(byte[] key) {
        return retrieval.isAway(new Key(key));
    }

    /// Whether a key is here of which nothing is known but that: [#fetch] brings its value, and what is known with it.
    public boolean isStranger(byte[] key) {
        Key asked = new Key(key);
        return retrieval.isAway(asked) && ground.index().find(ground.hash(asked)) == null;
    }

    /// Bytes of a value that is on disk alone; 0 when it is in host memory, or nobody knows how
    /// large it is.
    long awayBytes(byte[] key) {
        return retrieval.awayBytes(new Key(key));
    }

    /// A client was told that a value is not here, as computing it takes less time than reading it: a miss.
    void leftToCompute() {
        ground.counters().cheaperComputed.increment();
    }

    /// Brings a value into host memory and holds it.
    ///
    /// @param executor runs `then`, once; if it takes nothing any more, `then` is not run and nothing is held
    /// @param then gets the value, or none when it is gone or late
    public void fetch(byte[] key, Executor executor, Consumer<Reading> then) {
        fetch(key, Long.MAX_VALUE, executor, then);
    }

    /// The same for who waits no longer than a time of his own.
    ///
    /// @param mostNanos how long it may take; what [KeyspaceOptions#arrival] is, is the most
    public void fetch(byte[] key, long mostNanos, Executor executor, Consumer<Reading> then) {
        retrieval.fetch(new Key(key), mostNanos, executor, then);
    }

    /// Whether a key is here and may be said to be; if so, it is kept here for a moment, with its other half. One that
    /// cannot be kept, as too much is kept already, is said not to be here while the store evicts.
    /// A look-up, and one with the read that follows it.
    public boolean exists(byte[] key) {
        boolean here = find(key);
        if (here) {
            countHit();
        }
        return here;
    }

    /// As [#exists] for a caller who may not tell of it: counts a miss, but no hit.
    boolean find(byte[] key) {
        return retrieval.exists(new Key(key));
    }

    /// A client was told of what [#find] has found.
    void countHit() {
        ground.counters().hits.increment();
    }

    /// A client is about to be told that a key is here, and not given its value: that and the read that follows are one
    /// look-up.
    ///
    /// @return whether it may be told, as by [#exists]
    public boolean told(byte[] key) {
        return retrieval.told(new Key(key));
    }

    /// Whether a key has a value of this size and note already; if so, it counts as used now, but not as read.
    ///
    /// Where a key is a digest of content, that is the same value.
    public boolean holds(byte[] key, long bytes, TensorNote note) {
        return retrieval.holds(new Key(key), bytes, note);
    }

    /// Whether a key is here; if so, it counts as used now. Promises nothing.
    public boolean touch(byte[] key) {
        try (Value value = get(key)) {
            return value != null || isAway(key);
        }
    }

    /// Takes what a client says of keys: it costs or brings hits and changes no value.
    ///
    /// @param keys each as [#put] takes it, in the order in which they are read
    /// @return of how many of them it was taken
    public int hint(List<byte[]> keys, ObjectHint hint) {
        return hints.take(keys, hint);
    }

    /// Follows the requests of one connection, to learn which keys belong together.
    public KeyRun newRun() {
        return new KeyRun(
                this,
                predecessors,
                (key, after) -> ground.cache().linkObject(ground.namespace(), key, after),
                ahead,
                terms);
    }

    /// Size and expiry of a key, or null when it is not here.
    public @Nullable KeyInfo info(byte[] key) {
        return retrieval.info(new Key(key));
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
        return changes.put(new Key(key), bytes, after);
    }

    /// Forgets a key; answers whether it was here.
    public boolean delete(byte[] key) {
        return changes.delete(new Key(key));
    }

    /// Whether a key counts as gone although the store may have it. To delete several keys together, ask this of
    /// all of them first, and then [#drop] those that do not: half of a value counts as gone once the other half
    /// is deleted.
    public boolean isGone(byte[] key) {
        return changes.isGone(new Key(key));
    }

    /// Forgets a key of which [#isGone] said no; answers whether it was here.
    public boolean drop(byte[] key) {
        return changes.drop(new Key(key));
    }

    /// Forgets a key if a value that is held is still its own; answers whether it was.
    public boolean delete(byte[] key, Value held) {
        return changes.delete(new Key(key), held);
    }

    /// Lets a key expire at a time if a value that is held is still its own; answers whether it is.
    ///
    /// @param atMillis milliseconds since the epoch, or 0 for never
    public boolean expireAt(byte[] key, long atMillis, Value held) {
        return changes.expireAt(new Key(key), atMillis, held);
    }

    /// Lets a key expire at a time; answers whether the key is here.
    ///
    /// @param atMillis milliseconds since the epoch, or 0 for never
    public boolean expireAt(byte[] key, long atMillis) {
        return info(key) != null && changes.expireAt(new Key(key), atMillis);
    }

    /// Keys here now.
    public long count() {
        tick();
        return ground.index().count();
    }

    /// A run of the listing of keys. A key that is there from the first run to the last is listed at least once.
    ///
    /// @param cursor 0 to begin, else what the run before answered
    public KeyPage scan(long cursor, int max) {
        if (cursor == 0) {
            tick();
        }
        long now = nowMillis();
        KeyIndex.Run run = ground.index().run(cursor, max);
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
        ground.promises().withdrawAll();
        long dropped = ground.cache().drop(ground.namespace());
        follower.follow(Integer.MAX_VALUE);
        return dropped;
    }

    /// Does what time brings, a bounded part at a time: drops what has expired, hears what was evicted, ends promises.
    public void tick() {
        follower.follow(16);
        ground.promises().sweep(ground.clock().nanos(), ground.counters().pressure());
        long now = nowMillis();
        for (KeyEntry entry : ground.index().expired(now, EXPIRE_AT_ONCE)) {
            removal.expire(entry, now);
        }
    }

    /// The store has told all that it had on disk: that counts for the quota from now on.
    public void recovered() {
        strangers.find();
    }

    /// Ends all promises, so that the store can be closed.
    public void release() {
        ground.promises().withdrawAll();
    }

    /// What is here and what was done.
    public KeyspaceStats stats() {
        return ground.counters().stats(ground.index(), ground.promises(), bounds, allowance.usage());
    }
}
