package io.kvcache.server.keyspace;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.server.miss.Departed;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// What clients change: values that they put, delete, and give another end. Store and index change together.
///
/// **Threads.** Any.
final class Changes {

    private final Ground ground;
    private final Writings writings;
    private final Allowance allowance;
    private final Lapses lapses;
    private final Removal removal;
    private final Adoption adoption;
    private final Conditions conditions;
    private final RefusedHalves refusedHalves;

    Changes(Ground ground, Writings writings, Allowance allowance, Lapses lapses, Removal removal, Adoption adoption) {
        this.ground = ground;
        this.writings = writings;
        this.allowance = allowance;
        this.lapses = lapses;
        this.removal = removal;
        this.adoption = adoption;
        conditions = new Conditions(ground);
        refusedHalves = new RefusedHalves(ground.clock());
    }

    /// Begins to write a value.
    ///
    /// @param after the key that readers take before this one; null for none
    PendingPut put(Key wanted, long bytes, byte @Nullable [] after) {
        byte[] other = Halves.other(wanted.bytes());
        if (other != null && refusedHalves.has(new Key(other))) {
            return refused(wanted, bytes);
        }
        writings.begin(wanted);
        Writings.Claim claim = allowance.claim(writings, wanted, bytes);
        if (claim != null) {
            ObjectWriter writer = ground.cache()
                    .putObject(ground.namespace(), wanted.bytes(), after, bytes + Trailer.BYTES, KvCache.NO_WAIT);
            if (writer.outcome() == PutOutcome.RESERVED) {
                return PendingPut.writing(this, wanted, bytes, claim, writer);
            }
            writer.close();
            claim.release();
        }
        writings.end(wanted);
        if (other != null) {
            refusedHalves.add(wanted);
            delete(new Key(other));
        }
        return refused(wanted, bytes);
    }

    private PendingPut refused(Key key, long bytes) {
        ground.counters().refused.increment();
        return PendingPut.refused(this, key, bytes);
    }

    /// Makes a value findable that is complete; answers whether the condition held.
    boolean commit(Key key, ObjectWriter writer, KeyInfo info, PendingPut.Condition condition) {
        BlockKey hash = ground.hash(key);
        ReentrantLock lock = ground.locks().of(hash);
        lock.lock();
        try {
            if (!conditions.hold(key, hash, condition)) {
                return false;
            }
            if (writer.seal() == SealOutcome.SEALED) {
                KeyEntry entry = new KeyEntry(key, hash, info.bytes(), info.expiresAtMillis());
                ground.index().put(entry);
                adoption.pair(entry);
            }
        } finally {
            lock.unlock();
        }
        ground.counters().stored.increment();
        ground.counters().receivedBytes.add(info.bytes());
        ground.promises()
                .replaced(
                        key, ground.cache(), ground.namespace(), ground.clock().nanos());
        if (Halves.other(key.bytes()) != null) {
            refusedHalves.forget(key);
        }
        return true;
    }

    /// Forgets a key; answers whether it was here.
    boolean delete(Key wanted) {
        if (lapses.isGone(wanted)) {
            removal.drop(wanted, Departed.Cause.DELETED);
            return false;
        }
        return drop(wanted);
    }

    /// Whether a key counts as gone; asked of all keys that are dropped together before the first of them is, as
    /// half of a value counts as gone when the other half is.
    boolean isGone(Key wanted) {
        return lapses.isGone(wanted);
    }

    /// Forgets a key that does not count as gone; answers whether it was here.
    boolean drop(Key wanted) {
        boolean dropped = removal.drop(wanted, Departed.Cause.DELETED);
        if (dropped) {
            ground.counters().deleted.increment();
        }
        return dropped;
    }

    /// Forgets a key if it has a value that is held; answers whether it had.
    boolean delete(Key wanted, Value held) {
        boolean done = whileHas(wanted, held, () -> removal.drop(wanted, Departed.Cause.DELETED));
        if (done) {
            ground.counters().deleted.increment();
        }
        return done;
    }

    /// Lets a key expire at another time if it has a value that is held; answers whether it has.
    boolean expireAt(Key wanted, long atMillis, Value held) {
        return whileHas(wanted, held, () -> {
            var _ = adoption.adopt(wanted, held); // it may have come from disk by a hint, and nobody asked for it yet
            return expireAt(wanted, atMillis);
        });
    }

    private boolean whileHas(Key wanted, Value held, BooleanSupplier change) {
        ReentrantLock lock = ground.locks().of(ground.hash(wanted));
        lock.lock();
        try (ObjectView now = ground.cache().holdObject(ground.namespace(), wanted.bytes())) {
            return now != null && held.isIn(now) && change.getAsBoolean();
        } finally {
            lock.unlock();
        }
    }

    /// Lets a key expire at another time, 0 for never; answers whether the index has it.
    boolean expireAt(Key wanted, long atMillis) {
        BlockKey hash = ground.hash(wanted);
        ReentrantLock lock = ground.locks().of(hash);
        lock.lock();
        try {
            KeyEntry entry = ground.index().find(hash);
            if (entry != null) {
                ground.index().expireAt(entry, atMillis);
            }
            return entry != null;
        } finally {
            lock.unlock();
        }
    }
}
