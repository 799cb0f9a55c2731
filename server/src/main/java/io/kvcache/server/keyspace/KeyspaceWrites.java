package io.kvcache.server.keyspace;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.miss.MissCauses;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// What clients change: values that they put, delete, and give another end. Store and index change together.
///
/// **Threads.** Any.
final class KeyspaceWrites {

    private final KeyspaceContext keyspaceContext;
    private final InFlightWrites inFlightWrites;
    private final QuotaEnforcer quotaEnforcer;
    private final StaleValueChecker staleValueChecker;
    private final KeyRemover keyRemover;
    private final IndexBackfill indexBackfill;
    private final PutConditionChecker putConditionChecker;
    private final RejectedKeyPairs rejectedKeyPairs;

    KeyspaceWrites(
            KeyspaceContext keyspaceContext,
            InFlightWrites inFlightWrites,
            QuotaEnforcer quotaEnforcer,
            StaleValueChecker staleValueChecker,
            KeyRemover keyRemover,
            IndexBackfill indexBackfill) {
        this.keyspaceContext = keyspaceContext;
        this.inFlightWrites = inFlightWrites;
        this.quotaEnforcer = quotaEnforcer;
        this.staleValueChecker = staleValueChecker;
        this.keyRemover = keyRemover;
        this.indexBackfill = indexBackfill;
        putConditionChecker = new PutConditionChecker(keyspaceContext);
        rejectedKeyPairs = new RejectedKeyPairs(keyspaceContext.clock());
    }

    /// Begins to write a value.
    ///
    /// @param predecessor the key that readers take before this one; null for none
    PendingPut put(Key key, long bytes, byte @Nullable [] predecessor) {
        byte[] other = LmcacheKeyPair.otherKey(key.bytes());
        if (other != null && rejectedKeyPairs.contains(new Key(other))) {
            return rejected(key, bytes);
        }
        inFlightWrites.begin(key);
        InFlightWrites.WriteReservation writeReservation = quotaEnforcer.reserve(inFlightWrites, key, bytes);
        if (writeReservation != null) {
            ObjectWriter writer = keyspaceContext
                    .cache()
                    .putObject(
                            keyspaceContext.namespace(),
                            key.bytes(),
                            predecessor,
                            bytes + ValueTrailer.BYTES,
                            KvCache.NO_WAIT);
            if (writer.outcome() == PutOutcome.RESERVED) {
                return PendingPut.writing(this, key, bytes, writeReservation, writer);
            }
            writer.close();
            writeReservation.release();
        }
        inFlightWrites.end(key);
        if (other != null) {
            rejectedKeyPairs.add(key);
            delete(new Key(other));
        }
        return rejected(key, bytes);
    }

    private PendingPut rejected(Key key, long bytes) {
        keyspaceContext.counters().refused.increment();
        return PendingPut.rejected(this, key, bytes);
    }

    /// Makes a value findable that is complete; answers whether the condition held.
    boolean commit(Key key, ObjectWriter writer, KeyInfo info, PendingPut.Condition condition) {
        BlockKey hash = keyspaceContext.digestOf(key);
        ReentrantLock lock = keyspaceContext.locks().of(hash);
        lock.lock();
        try {
            if (!putConditionChecker.isMet(key, hash, condition)) {
                return false;
            }
            if (writer.seal() == SealOutcome.SEALED) {
                KeyEntry entry = new KeyEntry(key, hash, info.bytes(), info.expiresAtMillis());
                keyspaceContext.index().put(entry);
                indexBackfill.markPaired(entry);
            }
        } finally {
            lock.unlock();
        }
        keyspaceContext.counters().stored.increment();
        keyspaceContext.counters().receivedBytes.add(info.bytes());
        keyspaceContext
                .existsPins()
                .onReplaced(
                        key,
                        keyspaceContext.cache(),
                        keyspaceContext.namespace(),
                        keyspaceContext.clock().nanos());
        if (LmcacheKeyPair.otherKey(key.bytes()) != null) {
            rejectedKeyPairs.remove(key);
        }
        return true;
    }

    /// Forgets a key; answers whether it was here.
    boolean delete(Key key) {
        if (staleValueChecker.isStale(key)) {
            keyRemover.remove(key, MissCauses.Cause.DELETED);
            return false;
        }
        return deleteUnchecked(key);
    }

    /// Whether a key counts as gone; asked of all keys that are dropped together before the first of them is, as
    /// half of a value counts as gone when the other half is.
    boolean isStale(Key key) {
        return staleValueChecker.isStale(key);
    }

    /// Forgets a key that does not count as gone; answers whether it was here.
    boolean deleteUnchecked(Key key) {
        boolean dropped = keyRemover.remove(key, MissCauses.Cause.DELETED);
        if (dropped) {
            keyspaceContext.counters().deleted.increment();
        }
        return dropped;
    }

    /// Forgets a key if it has a value that is held; answers whether it had.
    boolean delete(Key key, PinnedValue held) {
        boolean done = ifStillHeld(key, held, () -> keyRemover.remove(key, MissCauses.Cause.DELETED));
        if (done) {
            keyspaceContext.counters().deleted.increment();
        }
        return done;
    }

    /// Lets a key expire at another time if it has a value that is held; answers whether it has.
    boolean expireAt(Key key, long atMillis, PinnedValue held) {
        return ifStillHeld(key, held, () -> {
            var _ = indexBackfill.backfill(
                    key, held); // it may have come from disk by a hint, and nobody asked for it yet
            return expireAt(key, atMillis);
        });
    }

    private boolean ifStillHeld(Key key, PinnedValue held, BooleanSupplier change) {
        ReentrantLock lock = keyspaceContext.locks().of(keyspaceContext.digestOf(key));
        lock.lock();
        try (ObjectView now = keyspaceContext.cache().holdObject(keyspaceContext.namespace(), key.bytes())) {
            return now != null && held.isSameValue(now) && change.getAsBoolean();
        } finally {
            lock.unlock();
        }
    }

    /// Lets a key expire at another time, 0 for never; answers whether the index has it.
    boolean expireAt(Key key, long atMillis) {
        BlockKey hash = keyspaceContext.digestOf(key);
        ReentrantLock lock = keyspaceContext.locks().of(hash);
        lock.lock();
        try {
            KeyEntry entry = keyspaceContext.index().find(hash);
            if (entry != null) {
                keyspaceContext.index().expireAt(entry, atMillis);
            }
            return entry != null;
        } finally {
            lock.unlock();
        }
    }
}
