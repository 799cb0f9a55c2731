package io.kvcache.core.store;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.tree.RecordPool;
import java.util.Arrays;
import java.util.BitSet;

/// Records that were brought into host memory because somebody is likely to read them, until that
/// happens or they leave.
///
/// A guess that nobody reads is no use: for policies, for admission to disk and for the odds of
/// reuse that it learns only the read counts that a record was brought for ([#used]). Only a policy
/// that orders by the coming alone hears of nothing else. The same holds of what a hint has brought
/// in: the hint is no use, and the read is one.
///
/// What is held unused, and how often guesses came true, is known for each group of [Shares] apart:
/// one tenant's bad guesses end nobody else's.
///
/// **Threads.** Owned by the store's lock.
final class Prefetched {

    /// What is kept of all outcomes before at each one: the last 256 count for two thirds.
    private static final double KEEP = 1 - 1.0 / 256;

    /// Taken for used before anything is known.
    private static final double BELIEF = 4;

    private final RecordPool pool;
    private final Shares shares;
    private final BitSet records = new BitSet();
    /// On their way because of what somebody said, and nobody waits for them.
    private final BitSet unasked = new BitSet();
    private Guesses[] ofGroup = {};
    private long begun;
    private long used;
    private long wasted;
    private long aheadBytes;

    /// Of one group.
    private static final class Guesses {
        private long aheadBytes;
        private double recentlyUsed = BELIEF;
        private double recent = BELIEF;
    }

    Prefetched(RecordPool pool, Shares shares) {
        this.pool = pool;
        this.shares = shares;
    }

    private Guesses of(int group) {
        int known = ofGroup.length;
        if (group >= known) {
            ofGroup = Arrays.copyOf(ofGroup, group + 1);
            Arrays.setAll(ofGroup, each -> each < known ? ofGroup[each] : new Guesses());
        }
        return ofGroup[group];
    }

    /// A record has a slot, and is about to be read into it.
    void begin(int record) {
        records.set(record);
        begun++;
        aheadBytes += pool.bytes(record);
        of(shares.group(record)).aheadBytes += pool.bytes(record);
    }

    /// Whether a record was brought in, or is about to come, and nobody has used it.
    boolean has(int record) {
        return records.get(record);
    }

    /// A record is on its way for nobody who waits: for a hint, or above what is being put.
    void unasked(int record) {
        unasked.set(record);
    }

    /// Somebody waits for a record now.
    void asked(int record) {
        unasked.clear(record);
    }

    /// A record has come.
    ///
    /// @return whether that is no use: it was a guess, or nobody has waited for it
    boolean cameUnused(int record) {
        boolean nobodyWaited = unasked.get(record);
        unasked.clear(record);
        return nobodyWaited || has(record);
    }

    /// A record is used.
    ///
    /// @return whether it was brought in for this
    boolean used(int record) {
        if (!records.get(record)) {
            return false;
        }
        used++;
        end(record, 1);
        return true;
    }

    /// A record's slot goes.
    void left(int record) {
        unasked.clear(record);
        if (records.get(record)) {
            wasted++;
            end(record, 0);
        }
    }

    private void end(int record, int success) {
        records.clear(record);
        aheadBytes -= pool.bytes(record);
        Guesses guesses = of(shares.group(record));
        guesses.aheadBytes -= pool.bytes(record);
        guesses.recentlyUsed = KEEP * guesses.recentlyUsed + success;
        guesses.recent = KEEP * guesses.recent + 1;
    }

    /// Odds that one of a group is used, above 0 to 1, by those of late.
    double odds(int group) {
        return of(group).recentlyUsed / of(group).recent;
    }

    /// Bytes of a group that are here or on their way, and were not used yet.
    long aheadBytes(int group) {
        return of(group).aheadBytes;
    }

    /// Checks that each that was not used yet has a slot, and their bytes.
    void validate() {
        long bytes = 0;
        for (int record = records.nextSetBit(0); record >= 0; record = records.nextSetBit(record + 1)) {
            if (pool.hostPage(record) == SlabPool.NONE) {
                throw new AssertionError("record " + record + " was prefetched and has no slot");
            }
            bytes += pool.bytes(record);
        }
        for (int record = unasked.nextSetBit(0); record >= 0; record = unasked.nextSetBit(record + 1)) {
            if (pool.hostPage(record) == SlabPool.NONE) {
                throw new AssertionError("record " + record + " is on its way and has no slot");
            }
        }
        if (bytes != aheadBytes || begun != used + wasted + records.cardinality()) {
            throw new AssertionError("prefetched are " + bytes + " bytes, counted as " + stats());
        }
    }

    /// What became of them.
    PrefetchStats stats() {
        return new PrefetchStats(begun, used, wasted, aheadBytes);
    }
}
