package io.kvcache.core.store;

import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tree.RecordPool;
import org.jspecify.annotations.Nullable;

/// Which records are worth a write to disk, by what they promise.
///
/// **By value.** A record promises the odds that it is used again ([ReuseOdds]) times the root of
/// what computing it takes beside the mean of what is put ([RecomputeCost]), times how much of it
/// matters, as callers say ([PolicyState#weight]). One that was used again is taken to be used once
/// more. [WritePrice] says how much a promise has to be, so that a share of what is put is written.
/// The root is halfway between what saves most prefill, which is dear far into long prompts, and
/// what finds most blocks.
///
/// A use counts for the odds when it comes while a copy would lie on disk: until as much is put as
/// makes [AdmissionKind#WRITTEN_SHARE] of it fill all disks.
///
/// **What has left.** Uses of records that nobody has any more are remembered ([PutNotes]): one
/// that returns counts as used, for the kind of its first put. Of what made room on a disk they are
/// remembered by value alone: under second-hit two fifths more was written on the synthetic trace,
/// and less found, when they were.
///
/// **Threads.** Owned by the store's lock.
final class Prospects {

    private final RecordPool pool;
    private final ObjectChains chains;
    private final ReuseOdds odds = new ReuseOdds();
    private final RecomputeCost cost;
    private final PolicyState policies;
    private @Nullable AdmissionKind kind;
    private @Nullable PutNotes notes;
    private double gain = AdmissionKind.USUAL_GAIN;
    private WritePrice price = new WritePrice(AdmissionKind.WRITTEN_SHARE, gain);
    private double stay;

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
            notes = new PutNotes(pool, chains);
        }
    }

    /// There is a disk with room for so many bytes, beside others.
    void opened(long bytes) {
        stay += bytes / AdmissionKind.WRITTEN_SHARE;
    }

    /// What computing takes.
    RecomputeCost cost() {
        return cost;
    }

    /// A record is about to be put.
    ///
    /// @param blocks of its prompt from this one on, or 0 when nobody knows
    void begins(int record, int blocks) {
        if (notes != null) {
            notes.begins(record, blocks);
        }
    }

    /// A record was sealed that was not known.
    ///
    /// @return whether it is worth a write
    boolean put(int record) {
        price.put(pool.bytes(record));
        cost.put(record);
        if (notes == null) {
            uses(record, 0);
            return isWorth(record);
        }
        PutNotes.Return before = notes.returned(record);
        notes.put(record);
        uses(record, before == null ? 0 : before.uses());
        if (before != null) {
            return used(record, before.kind(), before.since());
        }
        odds.put(notes.kind(record));
        return isWorth(record);
    }

    /// An object is about to take the place of another, and is one with it as to how it is used.
    void succeeds(int record, int older) {
        uses(record, Identity.uses(pool.identity(older)));
        if (notes != null) {
            notes.succeeds(record, older);
        }
    }

    /// An object was sealed in place of another.
    ///
    /// @return whether it is worth a write
    boolean putAgain(int record) {
        price.put(pool.bytes(record));
        cost.put(record);
        boolean worth = used(record);
        if (notes != null) {
            notes.putAgain(record);
        }
        return worth;
    }

    /// A record was found that a disk had before. Whether it was used since it was put nobody knows
    /// any more; it counts as if it was, because no put is counted that its first use from now on
    /// could belong to.
    void found(int record) {
        uses(record, 1);
    }

    /// A known record was used.
    ///
    /// @return whether it is worth a write
    boolean used(int record) {
        return notes == null ? used(record, 0, Long.MAX_VALUE) : used(record, notes.kind(record), notes.since(record));
    }

    private boolean used(int record, int kind, long since) {
        int uses = Identity.uses(pool.identity(record));
        if (uses == 0 && (double) since <= stay) {
            odds.used(kind);
        }
        uses(record, uses + 1);
        return isWorth(record);
    }

    /// A record has left, nobody has it any more, and it may be put again.
    void left(int record) {
        if (notes != null) {
            notes.left(record);
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
        double promise = policies.weight(record) * Math.sqrt(cost.share(record)) * (uses > 0 ? 1 : oddsOf(record));
        return promise * gain > 1 && promise >= price.promise();
    }

    private void uses(int record, int uses) {
        pool.flag(record, Identity.USES, false);
        pool.flag(record, Identity.usesBits(Math.min(uses, Identity.MOST_USES)), true);
    }

    private double oddsOf(int record) {
        return notes == null ? 1 : odds.of(notes.kind(record));
    }
}
