package io.kvcache.server.keyspace;

import io.kvcache.core.LocalKvCache;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.ObjectStore;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Clock;
import io.kvcache.server.miss.MissCauses;
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
/// ([KeyIndex]), when they expire, which two belong together ([LmcacheKeyPair]), who is writing ([InFlightWrites]), and
/// what was said to exist ([ExistsPins]). [KeyspaceReads] finds values, [KeyspaceWrites] puts and removes them.
///
/// **Time.** Expiry goes by the wall clock, as clients give it; everything else by the store's clock. [#tick] does
/// what time brings; a value whose time is up is not found from that moment on, ticked or not.
///
/// **Threads.** Any. No method waits for more than a lock that is held for some milliseconds at most.
public final class Keyspace {

    /// Longest key.
    public static final int MAX_KEY_BYTES = ObjectStore.MAX_OBJECT_KEY_BYTES;

    /// Largest value: the store's largest object, less what is kept behind the value.
    public static final long MAX_VALUE_BYTES = ObjectStore.MAX_OBJECT_BYTES - ValueTrailer.BYTES;

    /// Expired keys that one tick drops: some milliseconds.
    private static final int MAX_EXPIRIES_PER_TICK = 1000;

    private final KeyspaceContext keyspaceContext;
    private final KeyspaceLimits keyspaceLimits;
    private final Quota quota;
    private final KeyspaceReads keyspaceReads;
    private final KeyspaceWrites keyspaceWrites;
    private final KeyRemover keyRemover;
    private final UnindexedKeys unindexedKeys;
    private final QuotaEnforcer quotaEnforcer;
    private final KeyHintApplier hints;
    private final EvictionListener follower;
    private final ChunkOrder chunkOrder = new ChunkOrder();
    private final @Nullable ChunkPrefetcher chunkPrefetcher;
    private final @Nullable RecomputeEstimator terms;

    /// Registers the namespace.
    public Keyspace(LocalKvCache cache, Namespace namespace, Clock clock, InstantSource wall, KeyspaceOptions options) {
        keyspaceLimits = options.keyspaceLimits();
        quota = new Quota(options.quotaBytes());
        QuotaLru quotaLru = new QuotaLru(quota);
        KeyIndex index = new KeyIndex(quotaLru);
        KeyLocks locks = new KeyLocks();
        ExistsPins existsPins = new ExistsPins(options.existsPin().toNanos(), options.maxPinnedBytes());
        KeyspaceCounters counters = new KeyspaceCounters();
        keyspaceContext = new KeyspaceContext(
                cache, namespace, clock, wall, index, locks, existsPins, new MissCauses(), counters);
        cache.register(namespace);
        InFlightWrites inFlightWrites = new InFlightWrites();
        keyRemover = new KeyRemover(keyspaceContext, inFlightWrites);
        IndexBackfill indexBackfill = new IndexBackfill(keyspaceContext);
        StaleValueChecker staleValueChecker = new StaleValueChecker(keyspaceContext, keyRemover, indexBackfill);
        unindexedKeys = new UnindexedKeys(cache.objects(namespace), index, locks, quotaLru);
        quotaEnforcer = new QuotaEnforcer(quota, quotaLru, keyspaceLimits, index, keyRemover, unindexedKeys, clock);
        hints = new KeyHintApplier(keyspaceContext, quotaEnforcer, indexBackfill);
        follower = new EvictionListener(
                cache.events().withoutObjectPuts(), index, keyRemover, unindexedKeys, counters.evicted);
        DiskFetcher diskFetcher = new DiskFetcher(keyspaceContext, options.fetchTimeout());
        keyspaceReads = new KeyspaceReads(
                keyspaceContext, keyspaceLimits, diskFetcher, staleValueChecker, indexBackfill, quotaEnforcer);
        keyspaceWrites = new KeyspaceWrites(
                keyspaceContext, inFlightWrites, quotaEnforcer, staleValueChecker, keyRemover, indexBackfill);
        terms = options.recompute();
        chunkPrefetcher = options.prefetch() ? new ChunkPrefetcher(key -> cache.prefetchObject(namespace, key)) : null;
    }

    /// What all that the tenant has may take together.
    public Quota quota() {
        return quota;
    }

    /// How large keys and values may be.
    public KeyspaceLimits keyspaceLimits() {
        return keyspaceLimits;
    }

    /// Milliseconds since the epoch, by the clock that values expire by.
    public long nowMillis() {
        return keyspaceContext.wallClock().millis();
    }

    /// Holds a value, or answers null: when there is none, when it [#isOnDisk], when too much is on its way out.
    public @Nullable PinnedValue get(byte[] key) {
        return read(key).value();
    }

    /// As [#get], for who has to know why there is no value. One that is away is counted when it is fetched.
    public ReadResult read(byte[] key) {
        return keyspaceReads.read(new Key(key));
    }

    /// Whether a value is here, but not in host memory: [#fetch] brings it.
    public boolean isOnDisk(byte[] key) {
        return keyspaceReads.isOnDisk(new Key(key));
    }

    /// Whether a key is here of which nothing is known but that: [#fetch] brings its value, and what is known with
    /// it.
    public boolean isUnindexed(byte[] key) {
        Key asked = new Key(key);
        return keyspaceReads.isOnDisk(asked) && keyspaceContext.index().find(keyspaceContext.digestOf(asked)) == null;
    }

    /// Bytes of a value that is on disk alone; 0 when it is in host memory, or nobody knows how
    /// large it is.
    long onDiskBytes(byte[] key) {
        return keyspaceReads.onDiskBytes(new Key(key));
    }

    /// A client was told that a value is not here, as computing it takes less time than reading it: a miss.
    void countRecomputed() {
        keyspaceContext.counters().cheaperComputed.increment();
    }

    /// Brings a value into host memory and holds it.
    ///
    /// @param executor runs `callback`, once; if it takes nothing any more, `callback` is not run and nothing is
    ///     held
    /// @param callback gets the value, or none when it is gone or late
    public void fetch(byte[] key, Executor executor, Consumer<ReadResult> callback) {
        fetch(key, Long.MAX_VALUE, executor, callback);
    }

    /// The same for who waits no longer than a time of his own.
    ///
    /// @param maxNanos how long it may take; what [KeyspaceOptions#fetchTimeout] is, is the most
    public void fetch(byte[] key, long maxNanos, Executor executor, Consumer<ReadResult> callback) {
        keyspaceReads.fetch(new Key(key), maxNanos, executor, callback);
    }

    /// Whether a key is here and may be said to be; if so, it is kept here for a moment, with its other half. One
    /// that cannot be kept, as too much is kept already, is said not to be here while the store evicts.
    /// A look-up, and one with the read that follows it.
    public boolean exists(byte[] key) {
        boolean here = existsWithoutHit(key);
        if (here) {
            countHit();
        }
        return here;
    }

    /// As [#exists] for a caller who may not tell of it: counts a miss, but no hit.
    boolean existsWithoutHit(byte[] key) {
        return keyspaceReads.exists(new Key(key));
    }

    /// A client was told of what [#existsWithoutHit] has found.
    void countHit() {
        keyspaceContext.counters().hits.increment();
    }

    /// A client is about to be told that a key is here, and not given its value: that and the read that follows are
    /// one look-up.
    ///
    /// @return whether it may be told, as by [#exists]
    public boolean announceExists(byte[] key) {
        return keyspaceReads.announceExists(new Key(key));
    }

    /// Whether a key has a value of this size and note already; if so, it counts as used now, but not as read.
    ///
    /// Where a key is a digest of content, that is the same value.
    public boolean hasSameValue(byte[] key, long bytes, TensorMetadata note) {
        return keyspaceReads.hasSameValue(new Key(key), bytes, note);
    }

    /// Whether a key is here; if so, it counts as used now. Promises nothing.
    public boolean touch(byte[] key) {
        try (PinnedValue value = get(key)) {
            return value != null || isOnDisk(key);
        }
    }

    /// Takes what a client says of keys: it costs or brings hits and changes no value.
    ///
    /// @param keys each as [#put] takes it, in the order in which they are read
    /// @return of how many of them it was taken
    public int applyHint(List<byte[]> keys, ObjectHint hint) {
        return hints.apply(keys, hint);
    }

    /// Follows the requests of one connection, to learn which keys belong together.
    public ChunkSequenceTracker newSequenceTracker() {
        return new ChunkSequenceTracker(
                this,
                chunkOrder,
                (key, predecessor) -> keyspaceContext.cache().linkObject(keyspaceContext.namespace(), key, predecessor),
                chunkPrefetcher,
                terms);
    }

    /// Size and expiry of a key, or null when it is not here.
    public @Nullable KeyInfo info(byte[] key) {
        return keyspaceReads.info(new Key(key));
    }

    /// Begins to write a value that nobody is known to read after another.
    public PendingPut put(byte[] key, long bytes) {
        return put(key, bytes, null);
    }

    /// Begins to write a value.
    ///
    /// @param key 1 to [#MAX_KEY_BYTES] bytes; belongs to the keyspace from now on
    /// @param bytes 0 to [#MAX_VALUE_BYTES]
    /// @param predecessor the key that readers take before this one, which is not evicted earlier; null for none
    public PendingPut put(byte[] key, long bytes, byte @Nullable [] predecessor) {
        return keyspaceWrites.put(new Key(key), bytes, predecessor);
    }

    /// Forgets a key; answers whether it was here.
    public boolean delete(byte[] key) {
        return keyspaceWrites.delete(new Key(key));
    }

    /// Whether a key counts as gone although the store may have it. To delete several keys together, ask this of
    /// all of them first, and then [#deleteUnchecked] those that do not: half of a value counts as gone once the
    /// other half is deleted.
    public boolean isStale(byte[] key) {
        return keyspaceWrites.isStale(new Key(key));
    }

    /// Forgets a key of which [#isStale] said no; answers whether it was here.
    public boolean deleteUnchecked(byte[] key) {
        return keyspaceWrites.deleteUnchecked(new Key(key));
    }

    /// Forgets a key if a value that is held is still its own; answers whether it was.
    public boolean delete(byte[] key, PinnedValue held) {
        return keyspaceWrites.delete(new Key(key), held);
    }

    /// Lets a key expire at a time if a value that is held is still its own; answers whether it is.
    ///
    /// @param atMillis milliseconds since the epoch, or 0 for never
    public boolean expireAt(byte[] key, long atMillis, PinnedValue held) {
        return keyspaceWrites.expireAt(new Key(key), atMillis, held);
    }

    /// Lets a key expire at a time; answers whether the key is here.
    ///
    /// @param atMillis milliseconds since the epoch, or 0 for never
    public boolean expireAt(byte[] key, long atMillis) {
        return info(key) != null && keyspaceWrites.expireAt(new Key(key), atMillis);
    }

    /// Keys here now.
    public long count() {
        tick();
        return keyspaceContext.index().count();
    }

    /// A run of the listing of keys. A key that is there from the first run to the last is listed at least once.
    ///
    /// @param cursor 0 to begin, else what the run before answered
    public KeyPage scan(long cursor, int max) {
        if (cursor == 0) {
            tick();
        }
        long now = nowMillis();
        KeyIndex.IndexPage indexPage = keyspaceContext.index().page(cursor, max);
        List<byte[]> keys = new ArrayList<>(indexPage.entries().size());
        for (KeyEntry entry : indexPage.entries()) {
            if (!entry.isExpired(now)) {
                keys.add(entry.key().bytes().clone());
            }
        }
        return new KeyPage(keys, indexPage.next());
    }

    /// Forgets all keys; answers how many.
    public long clear() {
        keyspaceContext.existsPins().revokeAll();
        long dropped = keyspaceContext.cache().drop(keyspaceContext.namespace());
        follower.processEvents(Integer.MAX_VALUE);
        return dropped;
    }

    /// Does what time brings, a bounded part at a time: drops what has expired, hears what was evicted, ends
    /// promises.
    public void tick() {
        follower.processEvents(16);
        keyspaceContext
                .existsPins()
                .sweep(
                        keyspaceContext.clock().nanos(),
                        keyspaceContext.counters().evictionPressure());
        long now = nowMillis();
        for (KeyEntry entry : keyspaceContext.index().findExpired(now, MAX_EXPIRIES_PER_TICK)) {
            keyRemover.expire(entry, now);
        }
    }

    /// The store has told all that it had on disk: that counts for the quota from now on.
    public void onRecovered() {
        unindexedKeys.scan();
    }

    /// Ends all promises, so that the store can be closed.
    public void releasePins() {
        keyspaceContext.existsPins().revokeAll();
    }

    /// What is here and what was done.
    public KeyspaceStats stats() {
        return keyspaceContext
                .counters()
                .stats(keyspaceContext.index(), keyspaceContext.existsPins(), keyspaceLimits, quotaEnforcer.usage());
    }
}
