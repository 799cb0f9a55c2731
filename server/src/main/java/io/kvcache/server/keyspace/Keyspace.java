package io.kvcache.server.keyspace;

import io.kvcache.core.DiskBlock;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.ObjectStore;
import io.kvcache.core.ObjectView;
import io.kvcache.core.engine.EngineValueKey;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.spi.Clock;
import io.kvcache.server.keyspace.ChunkSequenceTracker.ChunkPrefetcher;
import io.kvcache.server.keyspace.KeyIndex.KeyEntry;
import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import io.kvcache.server.keyspace.KeyspaceOptions.RecomputeEstimator;
import io.kvcache.server.keyspace.KeyspaceStats.KeyspaceCounters;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.quota.PartRead;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Values by key, in one namespace of a store.
///
/// The store holds the bytes and decides what to evict. What it does not know is kept here: which keys there are
/// ([KeyIndex]), when they expire, which two belong together ([ObjectKey]), which are being written
/// ([StoredKeys]), and what was said to exist ([ExistsPins]). It finds values; [KeyspaceWrites] puts and removes
/// them.
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

    private final LocalKvCache cache;
    private final Namespace namespace;
    private final Clock clock;
    private final InstantSource wallClock;
    private final KeyspaceLimits keyspaceLimits;
    private final ByteBudget outgoing;
    private final long fetchNanos;
    private final boolean hasQuota;
    private final boolean hasFence;
    private final StoredKeys storedKeys;
    private final KeyspaceWrites writes;
    private final KeyIndex index;
    private final ExistsPins existsPins;
    private final KeyspaceCounters counters;
    private final KeyHintApplier hints;
    private volatile boolean wholeKeys;
    private final ChunkOrder chunkOrder = new ChunkOrder();
    private final @Nullable ChunkPrefetcher chunkPrefetcher;
    private final @Nullable RecomputeEstimator terms;

    /// Registers the namespace.
    public Keyspace(LocalKvCache cache, Namespace namespace, Clock clock, InstantSource wall, KeyspaceOptions options) {
        this.cache = cache;
        this.namespace = namespace;
        this.clock = clock;
        wallClock = wall;
        keyspaceLimits = options.keyspaceLimits();
        outgoing = keyspaceLimits.outgoing();
        fetchNanos = options.fetchTimeout().toNanos();
        storedKeys = new StoredKeys(cache, namespace, clock, wall, options);
        writes = new KeyspaceWrites(cache, namespace, clock, wall, storedKeys);
        hasQuota = storedKeys.quota().isLimited();
        hasFence = storedKeys.hasFence();
        index = storedKeys.index();
        existsPins = storedKeys.existsPins();
        counters = storedKeys.counters();
        hints = new KeyHintApplier(cache, namespace, clock, storedKeys);
        terms = options.recompute();
        chunkPrefetcher = options.prefetch() ? new ChunkPrefetcher(key -> cache.prefetchObject(namespace, key)) : null;
    }

    /// Has misses told of from now on; before the keyspace is used.
    public void recordMissesTo(MissLog log) {
        storedKeys.recordMissesTo(log);
    }

    /// Returns whether there can be such a key at all; where not, it simply is not here.
    public static boolean isValidKey(byte[] key) {
        return key.length >= 1 && key.length <= MAX_KEY_BYTES;
    }

    /// How large keys and values may be.
    public KeyspaceLimits keyspaceLimits() {
        return keyspaceLimits;
    }

    /// Milliseconds since the epoch, by the clock that values expire by.
    public long nowMillis() {
        return wallClock.millis();
    }

    /// Holds a value, or answers null: when there is none, when it [#isOnDisk], when too much is on its way out.
    public @Nullable PinnedValue get(byte[] key) {
        return read(key).value();
    }

    /// As [#get], for a caller that must know why there is no value. One that is away is counted when it is
    /// fetched.
    public ReadResult read(byte[] key) {
        ObjectKey asked = ObjectKey.of(namespace, key);
        if (isStaleLookup(asked)) {
            return ReadResult.MISS;
        }
        ObjectView view = cache.getObject(namespace, key);
        return view == null && isOnDisk(key) ? ReadResult.ON_DISK : onOpened(asked, view);
    }

    /// Returns whether a value is here, but not in host memory: [#fetch] brings it.
    public boolean isOnDisk(byte[] key) {
        return fetchNanos > 0 && isStored(key);
    }

    /// Returns whether a key is here of which nothing is known but that: [#fetch] brings its value, and what is
    /// known with it.
    public boolean isUnindexed(byte[] key) {
        if (!isOnDisk(key)) {
            return false;
        }
        ObjectKey asked = ObjectKey.of(namespace, key);
        return index.find(asked.digest()) == null && !storedKeys.isFenced(asked);
    }

    /// Bytes of a value that is on disk alone; 0 when it is in host memory, or when it is unknown how
    /// large it is.
    public long onDiskBytes(byte[] key) {
        KeyEntry entry = index.find(BlockKey.ofObject(namespace, key));
        if (entry == null || !isOnDisk(key)) {
            return 0;
        }
        try (ObjectView resident = cache.holdObject(namespace, key)) {
            return resident == null ? entry.bytes() : 0;
        }
    }

    /// Reads some bytes of a value that is on disk alone. Tell [#onPartRead] when they are there.
    ///
    /// @param bytes of the value, as [#onDiskBytes] said
    /// @return null when the value is to be fetched: it is another one by now, the part is large, or too much is
    ///     on its way out
    public @Nullable PartRead readPart(byte[] key, long bytes, long from, long length) {
        DiskBlock value = bytes == 0 ? null : cache.diskObject(namespace, key);
        boolean same = value != null && value.bytes() == bytes + ValueTrailer.BYTES + key.length;
        return value == null || !same || !value.isPart(length)
                ? null
                : PartRead.start(value, from, length, outgoing, fetchNanos);
    }

    /// A part has come from disk, and is sent.
    public void onPartRead(byte[] key, int bytes) {
        countRead(ObjectKey.of(namespace, key), bytes);
        counters.fromDisk.increment();
    }

    /// A client was told that a value is not here, as computing it takes less time than reading it: a miss.
    void countRecomputed(byte[] key) {
        storedKeys.recordMiss(ObjectKey.of(namespace, key), MissLog.Reason.COMPUTED_SOONER);
    }

    /// Brings a value into host memory and holds it.
    ///
    /// @param executor runs `callback`, once; if it takes nothing any more, `callback` is not run and nothing is
    ///     held
    /// @param callback gets the value, or none when it is gone or late
    public void fetch(byte[] key, Executor executor, Consumer<ReadResult> callback) {
        ObjectKey asked = ObjectKey.of(namespace, key);
        Consumer<@Nullable ObjectView> onView =
                view -> callback.accept(isStaleLookup(asked, view) ? ReadResult.MISS : onFetched(asked, view));
        // The store completes on its own thread, which must never be one that a loop refuses to run: the view
        // would be lost, and its pin with it. So the hop to the executor is made here, where it can be given back.
        cache.fetchObject(namespace, key, Duration.ofNanos(fetchNanos), Runnable::run)
                .whenComplete((view, _) -> deliver(view, executor, onView));
    }

    private static void deliver(@Nullable ObjectView view, Executor executor, Consumer<@Nullable ObjectView> callback) {
        try {
            executor.execute(() -> callback.accept(view));
        } catch (RejectedExecutionException ended) {
            if (view != null) {
                view.close();
            }
        }
    }

    private ReadResult onFetched(ObjectKey key, @Nullable ObjectView view) {
        if (view == null && isOnDisk(key.bytes())) {
            storedKeys.recordMiss(key, MissLog.Reason.LATE);
            existsPins.onMiss(key, clock.nanos());
            return ReadResult.TIMED_OUT;
        }
        ReadResult readResult = onOpened(key, view);
        PinnedValue value = readResult.value();
        if (value != null) {
            counters.fromDisk.increment();
            if (index.find(key.digest()) == null) {
                storedKeys.backfill(key, value);
            }
        }
        return readResult;
    }

    private ReadResult onOpened(ObjectKey key, @Nullable ObjectView view) {
        PinnedValue value = view == null ? null : PinnedValue.of(view);
        if (value == null) {
            storedKeys.recordMiss(key, storedKeys.missReason(key));
            existsPins.onMiss(key, clock.nanos());
            return ReadResult.MISS;
        }
        if (value.expiresAtMillis() != 0 && storedKeys.isExpiredUnindexed(key, value)) {
            value.close();
            return ReadResult.MISS;
        }
        if (!value.startSending(outgoing)) {
            value.close();
            storedKeys.recordMiss(key, MissLog.Reason.BUSY);
            existsPins.onMiss(key, clock.nanos());
            return ReadResult.THROTTLED;
        }
        countRead(key, value.bytes());
        return ReadResult.of(value);
    }

    /// Bytes of a value were found and are sent.
    private void countRead(ObjectKey key, long bytes) {
        // Without an answer to EXISTS in sight this read is a look-up of its own.
        if (counters.existsAnswers.get() == 0 || !existsPins.fulfilled(key)) {
            counters.hits.increment();
        }
        counters.sentBytes.add(bytes);
        if (hasQuota) {
            storedKeys.recordUse(key);
        }
    }

    /// Returns whether the store has a key, in memory or on disk.
    private boolean isStored(byte[] key) {
        return cache.containsObject(namespace, key);
    }

    /// Most keys are known at once not to be stale: they are not a half, nothing has an expiry, and no other
    /// server writes them.
    private boolean mayBeStale(ObjectKey key) {
        return hasFence || counters.expiringKeys.get() != 0 || ObjectKey.isHalf(key.bytes());
    }

    private boolean isStale(ObjectKey key) {
        return mayBeStale(key) && storedKeys.isStale(key);
    }

    private boolean isStaleLookup(ObjectKey key) {
        return mayBeStale(key) && storedKeys.isStaleLookup(key);
    }

    /// As [#isStaleLookup(ObjectKey)]; gives the view back when it is.
    private boolean isStaleLookup(ObjectKey key, @Nullable ObjectView view) {
        boolean stale = isStaleLookup(key);
        if (stale && view != null) {
            view.close();
        }
        return stale;
    }

    /// Returns whether a key is here and may be said to be; if so, it is kept here for a moment, with its other
    /// half. One that cannot be kept, as too much is kept already, is said not to be here while the store evicts.
    /// A look-up, and one with the read that follows it.
    public boolean exists(byte[] key) {
        boolean here = existsWithoutHit(key);
        if (here) {
            countHit();
        }
        return here;
    }

    /// As [#exists] for a caller that must not report it: counts a miss, but no hit.
    boolean existsWithoutHit(byte[] key) {
        ObjectKey asked = ObjectKey.of(namespace, key);
        if (isStaleLookup(asked)) {
            return false;
        }
        boolean here = existsPins.renew(asked, clock.nanos()) || (isStored(key) && grantPin(asked));
        ObjectKey half = here ? asked.otherHalf(namespace) : null;
        if (half != null) {
            here = announceExists(half) || !isStored(half.bytes());
        }
        if (!here) { // One that cannot be kept counts as evicted too: there is too little memory for it.
            storedKeys.recordMiss(asked, storedKeys.missReason(asked));
        }
        return here;
    }

    /// Returns whether a key is here, and its other half if it is a half. Unlike [#exists], it promises nothing,
    /// and so says yes also when no more can be promised. It counts a miss, but no hit: reading the value counts
    /// that.
    boolean isPresent(byte[] key) {
        ObjectKey asked = ObjectKey.of(namespace, key);
        ObjectKey half = asked.otherHalf(namespace);
        return isPresent(asked) && (half == null || isPresent(half));
    }

    private boolean isPresent(ObjectKey key) {
        if (isStaleLookup(key)) {
            return false;
        }
        boolean here = isStored(key.bytes());
        if (!here) {
            storedKeys.recordMiss(key, storedKeys.missReason(key));
        }
        return here;
    }

    private boolean announceExists(ObjectKey key) {
        return existsPins.renew(key, clock.nanos()) || grantPin(key);
    }

    private boolean grantPin(ObjectKey key) {
        return existsPins.grant(key, cache, namespace, clock.nanos());
    }

    /// A client was told of what [#existsWithoutHit] has found.
    void countHit() {
        counters.hits.increment();
    }

    /// A client is about to be told that a key is here, and not given its value: that and the read that follows
    /// are one look-up.
    ///
    /// @return whether it may be told, as by [#exists]
    public boolean announceExists(byte[] key) {
        return announceExists(ObjectKey.of(namespace, key));
    }

    /// A client of transport was given an object of the tenant's, of another namespace than this.
    public void countHitOfTransport(long bytes) {
        counters.hits.increment();
        counters.sentBytes.add(bytes);
    }

    /// A client of transport was told that an object of the tenant's is not here.
    public void countMissOfTransport(MissLog.Reason reason) {
        counters.recordMiss(reason);
    }

    /// A chunk of a sequence was read.
    void countChunkRead() {
        counters.chunksRead.increment();
    }

    /// LMCache's chunks that reads found, each half of one counted with the other.
    public long chunksRead() {
        return counters.chunksRead.sum();
    }

    /// Returns whether a key always has the same value, as it names its content.
    public boolean isContent(byte[] key) {
        return !hasFence || ChunkKey.of(key) != null;
    }

    /// Holds a value that is in host memory, to give it to another server: it counts neither as read nor as used.
    /// Null for others.
    public @Nullable PinnedValue hold(byte[] key) {
        ObjectView view = isStale(ObjectKey.of(namespace, key)) ? null : cache.holdObject(namespace, key);
        return view == null ? null : PinnedValue.of(view);
    }

    /// Returns the keys that another server is given for a key, in this order. Readers of LMCache look for the
    /// metadata, so the bytes go first, and with the metadata if that is here.
    public List<byte[]> keysToGive(byte[] key) {
        byte[] other = ObjectKey.otherHalf(key);
        if (other == null || wholeKeys) {
            return List.of(key);
        }
        if (EngineValueKey.isMetadata(key)) {
            return List.of(other, key);
        }
        return isStored(other) ? List.of() : List.of(key);
    }

    /// A client of Redis Cluster stores a key. It finds the halves of a value by a slot for each, so from now on
    /// another server is given them so.
    public void noteWholeKey(byte[] key) {
        if (!wholeKeys && ObjectKey.isHalf(key)) {
            wholeKeys = true;
        }
    }

    /// Returns whether clients of Redis Cluster have stored halves of values here.
    public boolean hasWholeKeys() {
        return wholeKeys;
    }

    /// Returns whether a key has a value of this size and note already; if so, it counts as used now, but not as
    /// read.
    ///
    /// If keys are digests of content, that means the same value.
    public boolean hasSameValue(byte[] key, long bytes, TensorMetadata note) {
        ObjectView view = isStale(ObjectKey.of(namespace, key)) ? null : cache.getObject(namespace, key);
        try (PinnedValue value = view == null ? null : PinnedValue.of(view)) {
            return value != null
                    && value.bytes() == bytes
                    && value.expiresAtMillis() == 0
                    && value.tensorMetadata().isSameTensor(note);
        }
    }

    /// Returns whether a key is here; if so, it counts as used now. Promises nothing.
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
    ///
    /// @param last that the connection had; it goes on unless it is of another keyspace
    public ChunkSequenceTracker sequenceTracker(@Nullable ChunkSequenceTracker last) {
        return last != null && last.keyspace() == this
                ? last
                : new ChunkSequenceTracker(
                        this,
                        chunkOrder,
                        (key, predecessor) -> cache.linkObject(namespace, key, predecessor),
                        chunkPrefetcher,
                        terms);
    }

    /// Size and expiry of a key, or null when it is not here.
    public @Nullable KeyInfo info(byte[] key) {
        ObjectKey asked = ObjectKey.of(namespace, key);
        if (isStale(asked) || !isStored(key)) {
            return null;
        }
        KeyEntry known = index.find(asked.digest());
        KeyEntry entry = known == null ? storedKeys.backfill(asked) : known;
        return entry == null ? null : new KeyInfo(entry.bytes(), entry.expiresAtMillis());
    }

    /// Begins to write a value that is not known to be read after another.
    public PendingPut put(byte[] key, long bytes) {
        return put(key, bytes, null);
    }

    /// Begins to write a value.
    ///
    /// @param key 1 to [#MAX_KEY_BYTES] bytes; belongs to the keyspace from now on
    /// @param bytes 0 to [#MAX_VALUE_BYTES]
    /// @param predecessor the key that readers take before this one, which is not evicted earlier; null for none
    public PendingPut put(byte[] key, long bytes, byte @Nullable [] predecessor) {
        return writes.put(ObjectKey.of(namespace, key), bytes, predecessor);
    }

    /// Begins to write a value that is at hand: all that is left is to commit it, if there is room.
    public PendingPut put(byte[] key, byte[] value) {
        return writes.put(ObjectKey.of(namespace, key), value);
    }

    /// Stores a value that is at hand and never expires: for a small one that takes less than [#put].
    ///
    /// @param key as for [#put]
    /// @return false when there is no room
    public boolean store(byte[] key, byte[] value) {
        return writes.store(ObjectKey.of(namespace, key), value);
    }

    /// Returns whether [#store] suits a value of so many bytes: it is in one slot with its key.
    public static boolean isSmall(byte[] key, long bytes) {
        return key.length + bytes + ValueTrailer.BYTES <= SlotClass.OBJECT_SMALL_BYTES;
    }

    /// Tells which keys this thread will ask for next, in this order, so that it need not wait for each by itself.
    ///
    /// @param keys valid ones, not to be changed
    public void expect(List<byte[]> keys) {
        cache.warmObjects(namespace, keys);
    }

    /// Forgets a key; answers whether it was here.
    public boolean delete(byte[] key) {
        return writes.delete(ObjectKey.of(namespace, key));
    }

    /// Returns whether a key counts as gone although the store may have it. To delete several keys together, ask
    /// this of all of them first, and then [#deleteUnchecked] those that do not: half of a value counts as gone
    /// once the other half is deleted.
    public boolean isStale(byte[] key) {
        return isStale(ObjectKey.of(namespace, key));
    }

    /// Forgets a key of which [#isStale] said no; answers whether it was here.
    public boolean deleteUnchecked(byte[] key) {
        return writes.deleteUnchecked(ObjectKey.of(namespace, key));
    }

    /// Forgets a key if a value that is held is still its own; answers whether it was.
    public boolean delete(byte[] key, PinnedValue held) {
        return writes.delete(ObjectKey.of(namespace, key), held);
    }

    /// Lets a key expire at a time if a value that is held is still its own; answers whether it is.
    ///
    /// @param atMillis milliseconds since the epoch, or 0 for never
    public boolean expireAt(byte[] key, long atMillis, PinnedValue held) {
        return writes.expireAt(ObjectKey.of(namespace, key), atMillis, held);
    }

    /// Lets a key expire at a time; answers whether the key is here.
    ///
    /// @param atMillis milliseconds since the epoch, or 0 for never
    public boolean expireAt(byte[] key, long atMillis) {
        return info(key) != null && writes.expireAt(ObjectKey.of(namespace, key), atMillis);
    }

    /// The namespace of the store that has the values.
    public Namespace namespace() {
        return namespace;
    }

    /// Begins to put the chunks of LMCache that are here in order.
    ///
    /// @param stem of the model whose chunks are asked for; null to count those of all
    public ChunkTree chunkTree(@Nullable String stem) {
        return new ChunkTree(index, chunkOrder, stem);
    }

    /// Returns how many chunks of a sequence come before the chunk of a key, which a look-up that ended there has
    /// found;
    /// -1 where that is not known, and for keys of another form.
    public int chunksBefore(byte[] key) {
        ChunkKey chunk = ChunkKey.of(key);
        return chunk == null ? -1 : chunkOrder.depthOf(chunk.digest());
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
        KeyIndex.IndexPage indexPage = index.page(cursor, max);
        List<byte[]> keys = new ArrayList<>(indexPage.entries().size());
        for (KeyEntry entry : indexPage.entries()) {
            if (!entry.isExpired(now) && storedKeys.isAdmitted(entry.key(), entry)) {
                keys.add(entry.key().bytes().clone());
            }
        }
        return new KeyPage(keys, indexPage.next());
    }

    /// Forgets all keys; answers how many.
    public long clear() {
        existsPins.revokeAll();
        long dropped = cache.drop(namespace);
        storedKeys.processEvents(Integer.MAX_VALUE);
        return dropped;
    }

    /// Does what time brings, a bounded part at a time: drops what has expired, hears what was evicted, ends
    /// promises.
    public void tick() {
        storedKeys.processEvents(16);
        existsPins.sweep(clock.nanos());
        long now = nowMillis();
        for (KeyEntry entry : index.findExpired(now, MAX_EXPIRIES_PER_TICK)) {
            storedKeys.expire(entry, now);
        }
    }

    /// The store has told all that it had on disk: that counts for the quota from now on.
    public void onRecovered() {
        storedKeys.quota().scanUnindexed();
    }

    /// Ends all promises, so that the store can be closed.
    public void releasePins() {
        existsPins.revokeAll();
    }

    /// Returns the counts of keys and of requests.
    public KeyspaceStats stats() {
        return counters.stats(
                index, existsPins, keyspaceLimits, storedKeys.quota().usage());
    }

    /// The facts of a key that are known without fetching its value.
    ///
    /// @param bytes size of the value
    /// @param expiresAtMillis milliseconds since the epoch, or 0 for never
    public record KeyInfo(long bytes, long expiresAtMillis) {

        /// Host memory that it takes, in slots of `page` bytes at the least.
        public long storedBytes(int keyBytes, long page) {
            return ValueTrailer.storedBytes(keyBytes, bytes, page);
        }
    }

    /// A run of a listing.
    ///
    /// @param next where to go on; 0 when there is nothing more
    public record KeyPage(List<byte[]> keys, long next) {
        public KeyPage {
            keys = List.copyOf(keys);
        }
    }

    /// The outcome of a read.
    ///
    /// **Ownership.** The receiver closes the value, if there is one.
    ///
    /// @param value held in place, or null
    /// @param outcome why there is a value, or none
    public record ReadResult(@Nullable PinnedValue value, Outcome outcome) implements AutoCloseable {

        /// The kinds of outcome.
        public enum Outcome {
            /// The value.
            HIT,
            /// None.
            MISS,
            /// One that is on disk alone: [Keyspace#fetch] brings it.
            ON_DISK,
            /// One that is not held because too much is on its way out.
            THROTTLED,
            /// One that was to be brought from disk and did not come in time, or found no room in memory.
            /// It may come when it is asked for again.
            TIMED_OUT
        }

        /// The answer for a key that no value can have.
        public static final ReadResult MISS = new ReadResult(null, Outcome.MISS);
        static final ReadResult ON_DISK = new ReadResult(null, Outcome.ON_DISK);
        static final ReadResult THROTTLED = new ReadResult(null, Outcome.THROTTLED);
        static final ReadResult TIMED_OUT = new ReadResult(null, Outcome.TIMED_OUT);

        static ReadResult of(PinnedValue value) {
            return new ReadResult(value, Outcome.HIT);
        }

        /// Gives the value back, if there is one.
        @Override
        public void close() {
            if (value != null) {
                value.close();
            }
        }
    }
}
