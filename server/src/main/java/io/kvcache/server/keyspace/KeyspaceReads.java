package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.miss.MissCauses;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// How values are found and held, and what a miss is put down to.
///
/// **Threads.** Any.
final class KeyspaceReads {

    private final KeyspaceContext keyspaceContext;
    private final KeyspaceLimits keyspaceLimits;
    private final DiskFetcher diskFetcher;
    private final StaleValueChecker staleValueChecker;
    private final IndexBackfill indexBackfill;
    private final QuotaEnforcer quotaEnforcer;

    KeyspaceReads(
            KeyspaceContext keyspaceContext,
            KeyspaceLimits keyspaceLimits,
            DiskFetcher diskFetcher,
            StaleValueChecker staleValueChecker,
            IndexBackfill indexBackfill,
            QuotaEnforcer quotaEnforcer) {
        this.keyspaceContext = keyspaceContext;
        this.keyspaceLimits = keyspaceLimits;
        this.diskFetcher = diskFetcher;
        this.staleValueChecker = staleValueChecker;
        this.indexBackfill = indexBackfill;
        this.quotaEnforcer = quotaEnforcer;
    }

    /// Holds a value that is in host memory. One that is away is no miss yet.
    ReadResult read(Key key) {
        if (staleValueChecker.isStale(key)) {
            return ReadResult.MISS;
        }
        ObjectView view = keyspaceContext.cache().getObject(keyspaceContext.namespace(), key.bytes());
        return view == null && diskFetcher.isOnDisk(key) ? ReadResult.ON_DISK : onOpened(key, view);
    }

    /// Brings a value into host memory and holds it.
    ///
    /// @param maxNanos how long it may take, if the store allows as long
    void fetch(Key key, long maxNanos, Executor executor, Consumer<ReadResult> callback) {
        diskFetcher.fetch(
                key,
                maxNanos,
                executor,
                view -> callback.accept(staleValueChecker.isStale(key, view) ? ReadResult.MISS : onFetched(key, view)));
    }

    boolean isOnDisk(Key key) {
        return diskFetcher.isOnDisk(key);
    }

    /// Bytes of a value that is on disk alone, as far as they are known.
    long onDiskBytes(Key key) {
        KeyEntry entry = keyspaceContext.index().find(keyspaceContext.digestOf(key));
        if (entry == null || !diskFetcher.isOnDisk(key)) {
            return 0;
        }
        try (ObjectView resident = keyspaceContext.cache().holdObject(keyspaceContext.namespace(), key.bytes())) {
            return resident == null ? entry.bytes() : 0;
        }
    }

    private ReadResult onFetched(Key key, @Nullable ObjectView view) {
        if (view == null && diskFetcher.isOnDisk(key)) {
            keyspaceContext.counters().late.increment();
            keyspaceContext.existsPins().onMiss(key, keyspaceContext.clock().nanos());
            return ReadResult.TIMED_OUT;
        }
        ReadResult readResult = onOpened(key, view);
        PinnedValue value = readResult.value();
        if (value != null) {
            keyspaceContext.counters().fromDisk.increment();
        }
        if (value != null && keyspaceContext.index().find(keyspaceContext.digestOf(key)) == null) {
            indexBackfill.backfill(key, value);
        }
        return readResult;
    }

    private ReadResult onOpened(Key key, @Nullable ObjectView view) {
        PinnedValue value = view == null ? null : PinnedValue.of(view);
        if (value == null) {
            keyspaceContext.counters().recordMiss(missCause(keyspaceContext.digestOf(key)));
            keyspaceContext.existsPins().onMiss(key, keyspaceContext.clock().nanos());
            return ReadResult.MISS;
        }
        if (value.expiresAtMillis() != 0 && staleValueChecker.isExpiredUnindexed(key, value)) {
            value.close();
            return ReadResult.MISS;
        }
        if (!value.startSending(keyspaceLimits.outgoing())) {
            value.close();
            keyspaceContext.counters().busy.increment();
            keyspaceContext.existsPins().onMiss(key, keyspaceContext.clock().nanos());
            return ReadResult.THROTTLED;
        }
        if (!keyspaceContext.existsPins().fulfilled(key)) {
            keyspaceContext.counters().hits.increment();
        }
        keyspaceContext.counters().sentBytes.add(value.bytes());
        quotaEnforcer.recordUse(key, keyspaceContext.namespace());
        return ReadResult.of(value);
    }

    /// One that is still listed was evicted a moment ago.
    private MissCauses.Cause missCause(BlockKey hash) {
        return keyspaceContext.index().find(hash) == null
                ? keyspaceContext.missCauses().causeOf(hash)
                : MissCauses.Cause.EVICTED;
    }

    /// Whether a key is here and may be said to be; if so, it is kept here for a moment, with its other half. Counts a
    /// miss, and leaves a hit to the caller, who may not tell of it.
    boolean exists(Key key) {
        if (staleValueChecker.isStale(key)) {
            return false;
        }
        boolean here = existsPins().renew(key, nowNanos()) || (keyspaceContext.isStored(key) && grantPin(key));
        byte[] other = here ? LmcacheKeyPair.otherKey(key.bytes()) : null;
        if (other != null) {
            Key half = new Key(other);
            here = announceExists(half) || !keyspaceContext.isStored(half);
        }
        if (!here) { // One that cannot be kept counts as evicted too: there is too little memory for it.
            keyspaceContext.counters().recordMiss(missCause(keyspaceContext.digestOf(key)));
        }
        return here;
    }

    /// A client is about to be told that a key is here, in another way than by [#exists]; answers whether it may be.
    boolean announceExists(Key key) {
        return existsPins().renew(key, nowNanos()) || grantPin(key);
    }

    private ExistsPins existsPins() {
        return keyspaceContext.existsPins();
    }

    private long nowNanos() {
        return keyspaceContext.clock().nanos();
    }

    private boolean grantPin(Key key) {
        return existsPins().grant(key, keyspaceContext.cache(), keyspaceContext.namespace(), nowNanos());
    }

    /// Whether a key has a value of this size and note already; if so, it counts as used now, but not as read.
    boolean hasSameValue(Key key, long bytes, TensorMetadata note) {
        ObjectView view = staleValueChecker.isStale(key)
                ? null
                : keyspaceContext.cache().getObject(keyspaceContext.namespace(), key.bytes());
        PinnedValue value = view == null ? null : PinnedValue.of(view);
        if (value == null) {
            return false;
        }
        try (value) {
            return value.bytes() == bytes
                    && value.expiresAtMillis() == 0
                    && value.tensorMetadata().isSameTensor(note);
        }
    }

    /// Size and expiry of a key, or null when it is not here.
    @Nullable
    KeyInfo info(Key key) {
        if (!contains(key)) {
            return null;
        }
        KeyEntry known = keyspaceContext.index().find(keyspaceContext.digestOf(key));
        KeyEntry entry = known == null ? indexBackfill.backfill(key) : known;
        return entry == null ? null : new KeyInfo(entry.bytes(), entry.expiresAtMillis());
    }

    private boolean contains(Key key) {
        return !staleValueChecker.isStale(key) && keyspaceContext.isStored(key);
    }
}
