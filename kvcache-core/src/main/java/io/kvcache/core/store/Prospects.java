package io.kvcache.core.store;

import io.kvcache.core.policy.Departed;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tree.RecordPool;
import org.jspecify.annotations.Nullable;

/// Which records are worth a write to disk, by what they promise.
///
/// **By value.** A record promises the odds that it is used again ([ReuseOdds]) times what
/// computing it takes beside the mean of what is put ([RecomputeCost]); odds fall with depth, but
/// the blocks far into a prompt are the dear ones, times how much of it matters, as callers say
/// ([PolicyState#weight]). One that was used again is taken to be used once more. [WritePrice] says
/// how much a promise has to be, so that a share of what is put is written.
///
/// **What has left.** Uses of records that nobody has any more are remembered in [Departed], of twice as many as
/// there are records: one that returns counts as used. That takes 16 to 32 bytes of heap a record. Of what made room
/// on a disk they are remembered by value alone: under second-hit two fifths more was written on the synthetic
/// trace, and less found, when they were.
///
/// **Threads.** Owned by the store's lock.
final class Prospects {

    /// The order in which records left, in steps that [Departed] can tell apart.
    private static final int DEPARTURE = 16;

    private static final int MOST_DEPTH = Short.MAX_VALUE;

    private final RecordPool pool;
    private final ObjectChains chains;
    private final ReuseOdds odds = new ReuseOdds();
    private final RecomputeCost cost;
    private final PolicyState policies;
    private @Nullable AdmissionKind kind;
    private @Nullable Departed departed;
    private double gain = AdmissionKind.USUAL_GAIN;
    private WritePrice price = new WritePrice(AdmissionKind.WRITTEN_SHARE, gain);
    private long departures;

    /// How deep each object lay when it was put: where it lies later its neighbours may be gone. Two bytes a record
    /// once an object is put behind another, nothing before.
    private short[] objectDepths = {};

    Prospects(RecordPool pool, ObjectChains chains, Namespaces namespaces, PolicyState policies) {
        this.policies = policies;
        this.pool = pool;
        this.chains = chains;
        cost = new RecomputeCost(pool, namespaces);
    }

    /// Begins to judge.
    ///
    /// @param usesWorth what one use of a block of mean cost saves in units of what its write costs
    void begin(AdmissionKind newKind, double usesWorth) {
        kind = newKind;
        gain = usesWorth;
        price = new WritePrice(AdmissionKind.WRITTEN_SHARE, usesWorth);
        if (newKind != AdmissionKind.ALWAYS) {
            departed = new Departed(Math.min(2L * pool.capacity(), mostDeparted()));
        }
    }

    /// A sixteenth of the heap, whatever the store: an entry takes 8 bytes, and twice as many may be made as are asked
    /// for.
    private static long mostDeparted() {
        return Runtime.getRuntime().maxMemory() / 16 / (2 * Long.BYTES);
    }

    /// What computing takes.
    RecomputeCost cost() {
        return cost;
    }

    /// A record was sealed that was not known.
    ///
    /// @return whether it is worth a write
    boolean put(int record) {
        price.put(pool.bytes(record));
        cost.put(record);
        noteDepth(record);
        long before = departed == null ? Departed.NONE : departed.take(pool.fingerprint(record));
        if (before == Departed.NONE) {
            uses(record, 0);
            odds.put(depth(record));
            return isWorth(record);
        }
        uses(record, Departed.classOf(before));
        return used(record);
    }

    /// A record was found that a disk had before. Whether it was used since it was put nobody knows any more; it
    /// counts as if it was, because no put is counted that its first use from now on could belong to.
    void found(int record) {
        uses(record, 1);
    }

    /// A known record was used.
    ///
    /// @return whether it is worth a write
    boolean used(int record) {
        int uses = Identity.uses(pool.identity(record));
        if (uses == 0) {
            odds.used(depth(record));
        }
        uses(record, uses + 1);
        return isWorth(record);
    }

    /// A record has left, nobody has it any more, and it may be put again.
    void left(int record) {
        if (departed != null) {
            departures += DEPARTURE;
            departed.put(pool.fingerprint(record), Identity.uses(pool.identity(record)), departures, departures);
        }
    }

    /// So many bytes are to be written, or, below 0, are not to be after all.
    void written(long bytes) {
        price.written(bytes);
    }

    /// Whether a known record is worth a write as things are.
    boolean isWorth(int record) {
        int uses = Identity.uses(pool.identity(record));
        return switch (kind) {
            case ALWAYS -> true;
            case SECOND_HIT -> uses > 0;
            case VALUE -> isWorthItsPrice(record, uses);
            case null -> false;
        };
    }

    private boolean isWorthItsPrice(int record, int uses) {
        double promise = policies.weight(record) * cost.share(record) * (uses > 0 ? 1 : odds.of(depth(record)));
        return promise * gain > 1 && promise >= price.promise();
    }

    private void uses(int record, int uses) {
        pool.flag(record, Identity.USES, false);
        pool.flag(record, Identity.usesBits(Math.min(uses, Identity.MOST_USES)), true);
    }

    private int depth(int record) {
        boolean linked = objectDepths.length > 0 && Identity.isObject(pool.identity(record));
        return linked ? objectDepths[record] : pool.depth(record);
    }

    private void noteDepth(int record) {
        if (Identity.isObject(pool.identity(record))) {
            int depth = Math.min(MOST_DEPTH, chains.depth(record));
            if (depth > 0 && objectDepths.length == 0) {
                objectDepths = new short[pool.capacity()];
            }
            if (objectDepths.length > 0) {
                objectDepths[record] = (short) depth;
            }
        }
    }
}
