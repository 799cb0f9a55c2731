package io.kvcache.server.keyspace;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.spi.Clock;
import io.kvcache.server.keyspace.KeyIndex.KeyEntry;
import io.kvcache.server.keyspace.Keyspace.KeyInfo;
import io.kvcache.server.keyspace.KeyspaceStats.KeyspaceCounters;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.miss.MissLog;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.InstantSource;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// Writes the values of a keyspace: puts, removals by clients, and times of expiry. Store and index change
/// together, under the key's lock; see [StoredKeys].
///
/// **Several writers of one key.** Each fills room of its own, and its value replaces the older one when it is
/// complete. So the last writer to finish wins, as with Redis. A writer that disconnects, is too slow or finds its
/// condition refused takes nothing from the others.
///
/// **Threads.** Any.
final class KeyspaceWrites {

    /// Longer than a client takes from the first half of a value to the second.
    private static final Duration REJECTION_RETENTION = Duration.ofSeconds(10);

    private static final int MAX_REJECTED_HALVES = 10_000;

    private final LocalKvCache cache;
    private final Namespace namespace;
    private final Clock clock;
    private final InstantSource wallClock;
    private final StoredKeys keys;
    private final KeyspaceCounters counters;
    private final KeyIndex index;
    private final QuotaEnforcer quota;

    /// Halves that were not stored a moment ago, and why, so that the other one need not come either.
    private final Cache<ObjectKey, PendingPut.State> rejectedHalves;

    /// @param clock of the store
    /// @param wallClock that values expire by
    KeyspaceWrites(LocalKvCache cache, Namespace namespace, Clock clock, InstantSource wallClock, StoredKeys keys) {
        this.cache = cache;
        this.namespace = namespace;
        this.clock = clock;
        this.wallClock = wallClock;
        this.keys = keys;
        counters = keys.counters();
        index = keys.index();
        quota = keys.quota();
        rejectedHalves = Caffeine.newBuilder()
                .maximumSize(MAX_REJECTED_HALVES)
                .expireAfterWrite(REJECTION_RETENTION)
                .ticker(clock::nanos)
                .executor(Runnable::run)
                .build();
    }

    /// Begins to write a value.
    ///
    /// @param predecessor the key that readers take before this one; null for none
    PendingPut put(ObjectKey key, long bytes, byte @Nullable [] predecessor) {
        ObjectKey other = key.otherHalf(namespace);
        PendingPut.State why = other == null ? null : rejectedHalves.getIfPresent(other);
        if (why != null) {
            return drop(key, bytes, why);
        }
        why = PendingPut.State.REJECTED;
        keys.beginWrite(key);
        if (quota.reserve(key, bytes)) {
            ObjectWriter writer =
                    cache.putObject(namespace, key.bytes(), predecessor, bytes + ValueTrailer.BYTES, KvCache.NO_WAIT);
            if (writer.outcome() == PutOutcome.RESERVED) {
                return new PendingPut(this, key, bytes, writer);
            }
            why = writer.outcome() == PutOutcome.DECLINED ? PendingPut.State.DECLINED : why;
            writer.close();
            quota.onReceived(key, bytes);
        }
        keys.endWrite(key);
        if (other != null) {
            rejectedHalves.put(key, why);
            delete(other);
        }
        return drop(key, bytes, why);
    }

    /// Stores a value that is at hand and never expires; returns false when there is no room.
    boolean store(ObjectKey key, byte[] value) {
        if (quota.isLimited() || ObjectKey.isHalf(key.bytes())) {
            return storeByPut(key, value);
        }
        long number = keys.writeNumber();
        MemorySegment object = MemorySegment.ofArray(ValueTrailer.append(value, number));
        ReentrantLock lock = index.lockOf(key.digest());
        lock.lock();
        try {
            if (!cache.storeObject(namespace, key.bytes(), object, KvCache.NO_WAIT)) {
                counters.refused.increment();
                return false;
            }
            KeyEntry known = index.find(key.digest());
            if (known == null || !known.isOf(value.length, 0, number)) {
                keys.putEntry(new KeyEntry(key, value.length, 0, number));
            }
        } finally {
            lock.unlock();
        }
        onStored(key, value.length);
        return true;
    }

    private boolean storeByPut(ObjectKey key, byte[] value) {
        try (PendingPut put = put(key, value)) {
            return put.state() == PendingPut.State.WRITING
                    && put.commit(0, TensorMetadata.NONE, PendingPut.Condition.ALWAYS);
        }
    }

    /// Begins to write a value that is at hand.
    PendingPut put(ObjectKey key, byte[] value) {
        PendingPut put = put(key, value.length, null);
        int left = put.state() == PendingPut.State.WRITING ? value.length : 0;
        while (left > 0) {
            ByteBuffer room = put.writableBuffer();
            int part = Math.min(room.remaining(), left);
            room.put(value, value.length - left, part);
            left -= part;
        }
        return put;
    }

    private PendingPut drop(ObjectKey key, long bytes, PendingPut.State why) {
        (why == PendingPut.State.DECLINED ? counters.declined : counters.refused).increment();
        return new PendingPut(this, key, bytes, why);
    }

    /// The bytes of a value are there, or will not come.
    void onReceived(ObjectKey key, long bytes) {
        quota.onReceived(key, bytes);
    }

    /// A writer's value is stored or given up.
    void endWrite(ObjectKey key) {
        keys.endWrite(key);
    }

    /// The number for a value that is written now; 0 outside of a cluster.
    long writeNumber() {
        return keys.writeNumber();
    }

    /// Makes a value findable that is complete; returns whether the condition held.
    ///
    /// @param number at which it is written
    /// @param older the value that the key must still have, or null for any
    boolean commit(
            ObjectKey key,
            ObjectWriter writer,
            KeyInfo info,
            long number,
            PendingPut.Condition condition,
            @Nullable PinnedValue older) {
        ReentrantLock lock = index.lockOf(key.digest());
        lock.lock();
        try {
            if (!isMet(condition, key) || (older != null && !isStillHeld(key, older))) {
                return false;
            }
            if (writer.seal() == SealOutcome.SEALED) {
                KeyEntry entry = new KeyEntry(key, info.bytes(), info.expiresAtMillis(), number);
                keys.putEntry(entry);
                keys.markPaired(entry);
            }
        } finally {
            lock.unlock();
        }
        onStored(key, info.bytes());
        if (ObjectKey.isHalf(key.bytes())) {
            rejectedHalves.invalidate(key);
        }
        return true;
    }

    private void onStored(ObjectKey key, long bytes) {
        counters.stored.increment();
        counters.receivedBytes.add(bytes);
        keys.existsPins().onReplaced(key, cache, namespace, clock.nanos());
    }

    private boolean isMet(PendingPut.Condition condition, ObjectKey key) {
        if (condition == PendingPut.Condition.ALWAYS) {
            return true;
        }
        KeyEntry entry = index.find(key.digest());
        boolean present = (entry == null || !entry.isExpired(wallClock.millis()))
                && keys.isStored(key)
                && keys.isAdmitted(key, entry);
        return present == (condition == PendingPut.Condition.IF_PRESENT);
    }

    /// Forgets a key; returns whether it was here.
    boolean delete(ObjectKey key) {
        if (keys.isStale(key)) {
            keys.remove(key, MissLog.Reason.DELETED);
            return false;
        }
        return deleteUnchecked(key);
    }

    /// Forgets a key that does not count as gone; returns whether it was here.
    boolean deleteUnchecked(ObjectKey key) {
        boolean dropped = keys.remove(key, MissLog.Reason.DELETED);
        if (dropped) {
            counters.deleted.increment();
        }
        return dropped;
    }

    /// Forgets a key if it has a value that is held; returns whether it had.
    boolean delete(ObjectKey key, PinnedValue held) {
        boolean done = ifStillHeld(key, held, () -> keys.remove(key, MissLog.Reason.DELETED));
        if (done) {
            counters.deleted.increment();
        }
        return done;
    }

    /// Lets a key expire at another time if it has a value that is held; returns whether it has.
    boolean expireAt(ObjectKey key, long atMillis, PinnedValue held) {
        return ifStillHeld(key, held, () -> {
            var _ = keys.backfill(key, held); // a hint may have brought it from disk before any client asked for it
            return expireAt(key, atMillis);
        });
    }

    private boolean ifStillHeld(ObjectKey key, PinnedValue held, BooleanSupplier change) {
        ReentrantLock lock = index.lockOf(key.digest());
        lock.lock();
        try {
            return isStillHeld(key, held) && change.getAsBoolean();
        } finally {
            lock.unlock();
        }
    }

    private boolean isStillHeld(ObjectKey key, PinnedValue held) {
        try (ObjectView now = cache.holdObject(namespace, key.bytes())) {
            return now != null && held.isSameValue(now);
        }
    }

    /// Lets a key expire at another time, 0 for never; returns whether the index has it.
    boolean expireAt(ObjectKey key, long atMillis) {
        BlockKey hash = key.digest();
        ReentrantLock lock = index.lockOf(hash);
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
}
