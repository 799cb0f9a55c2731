package io.kvcache.core.store;

import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tree.RecordPool;
import org.jspecify.annotations.Nullable;

/// Which records are worth a write to disk, by what they promise.
///
/// **By value.** A record promises the odds that it is used again ([ReuseProbability]) times the root of
/// what computing it takes beside the mean of what is put ([RecomputeCost]), times how much of it
/// matters, as callers say ([PolicyState#weight]). One that was used again is taken to be used once
/// more. [AdmissionThreshold] says how much a promise has to be, so that a share of what is put is written.
/// The root is halfway between what saves most prefill, which is dear far into long prompts, and
/// what finds most blocks.
///
/// A use counts for the odds when it comes while a copy would lie on disk: until as much is put as
/// makes [AdmissionKind#WRITTEN_SHARE] of it fill all disks.
///
/// **What has left.** Uses of records that nobody has any more are remembered ([PutHistory]): one
/// that returns counts as used, for the kind of its first put. Of what made room on a disk they are
/// remembered by value alone: under second-hit two fifths more was written on the synthetic trace,
/// and less found, when they were.
///
/// **Threads.** Owned by the store's lock.
final class WriteAdmission {

    private final RecordPool pool;
    private final ObjectLinks objectLinks;
    private final ReuseProbability reuseProbability = new ReuseProbability();
    private final RecomputeCost cost;
    private final PolicyState policies;
    private @Nullable AdmissionKind kind;
    private @Nullable PutHistory putHistory;
    private double gain = AdmissionKind.DEFAULT_GAIN;
    private AdmissionThreshold admissionThreshold = new AdmissionThreshold(AdmissionKind.WRITTEN_SHARE, gain);
    private double stay;

    WriteAdmission(RecordPool pool, ObjectLinks chains, NamespaceRegistry namespaceRegistry, PolicyState policies) {
        this.policies = policies;
        this.pool = pool;
        this.objectLinks = chains;
        cost = new RecomputeCost(pool, namespaceRegistry);
    }

    /// Begins to judge.
    ///
    /// @param usesWorth what one use of a block of mean cost saves in units of what its write costs
    void start(AdmissionKind newKind, double usesWorth) {
        kind = newKind;
        gain = usesWorth;
        admissionThreshold = new AdmissionThreshold(AdmissionKind.WRITTEN_SHARE, usesWorth);
        if (newKind != AdmissionKind.ALWAYS) {
            putHistory = new PutHistory(pool, objectLinks);
        }
    }

    /// There is a disk with room for so many bytes, beside others.
    void onDiskAdded(long bytes) {
        stay += bytes / AdmissionKind.WRITTEN_SHARE;
    }

    /// What computing takes.
    RecomputeCost recomputeCost() {
        return cost;
    }

    /// A record is about to be put.
    ///
    /// @param blocks of its prompt from this one on, or 0 when nobody knows
    void onPutStarted(int record, int blocks) {
        if (putHistory != null) {
            putHistory.onPutStarted(record, blocks);
        }
    }

    /// A record was sealed that was not known.
    ///
    /// @return whether it is worth a write
    boolean onPut(int record) {
        admissionThreshold.onPut(pool.bytes(record));
        cost.onPut(record);
        if (putHistory == null) {
            setUses(record, 0);
            return isWorthWriting(record);
        }
        PutHistory.PastPut before = putHistory.takeGhost(record);
        putHistory.onPut(record);
        setUses(record, before == null ? 0 : before.uses());
        if (before != null) {
            return onUsed(record, before.kind(), before.since());
        }
        reuseProbability.onPut(putHistory.promptClass(record));
        return isWorthWriting(record);
    }

    /// An object is about to take the place of another, and is one with it as to how it is used.
    void onReplacing(int record, int older) {
        setUses(record, RecordFlags.uses(pool.flags(older)));
        if (putHistory != null) {
            putHistory.onReplacing(record, older);
        }
    }

    /// An object was sealed in place of another.
    ///
    /// @return whether it is worth a write
    boolean onReplaced(int record) {
        admissionThreshold.onPut(pool.bytes(record));
        cost.onPut(record);
        boolean worth = onUsed(record);
        if (putHistory != null) {
            putHistory.onReplaced(record);
        }
        return worth;
    }

    /// A record was found that a disk had before. Whether it was used since it was put nobody knows
    /// any more; it counts as if it was, because no put is counted that its first use from now on
    /// could belong to.
    void onRecovered(int record) {
        setUses(record, 1);
    }

    /// A known record was used.
    ///
    /// @return whether it is worth a write
    boolean onUsed(int record) {
        return putHistory == null
                ? onUsed(record, 0, Long.MAX_VALUE)
                : onUsed(record, putHistory.promptClass(record), putHistory.bytesSincePut(record));
    }

    private boolean onUsed(int record, int kind, long since) {
        int uses = RecordFlags.uses(pool.flags(record));
        if (uses == 0 && (double) since <= stay) {
            reuseProbability.onFirstUse(kind);
        }
        setUses(record, uses + 1);
        return isWorthWriting(record);
    }

    /// A record has left, nobody has it any more, and it may be put again.
    void onForgotten(int record) {
        if (putHistory != null) {
            putHistory.onForgotten(record);
        }
    }

    /// So many bytes are to be written, or, below 0, are not to be after all.
    void addWrittenBytes(long bytes) {
        admissionThreshold.onWritten(bytes);
    }

    /// Whether a known record is worth a write as things are.
    boolean isWorthWriting(int record) {
        int uses = RecordFlags.uses(pool.flags(record));
        return switch (kind) {
            case ALWAYS -> true;
            case SECOND_HIT -> uses > 0;
            case VALUE -> exceedsThreshold(record, uses);
            case null -> false;
        };
    }

    private boolean exceedsThreshold(int record, int uses) {
        double promise =
                policies.weight(record) * Math.sqrt(cost.relativeCost(record)) * (uses > 0 ? 1 : probabilityOf(record));
        return promise * gain > 1 && promise >= admissionThreshold.threshold();
    }

    private void setUses(int record, int uses) {
        pool.setFlags(record, RecordFlags.USES, false);
        pool.setFlags(record, RecordFlags.usesBits(Math.min(uses, RecordFlags.MAX_USES)), true);
    }

    private double probabilityOf(int record) {
        return putHistory == null ? 1 : reuseProbability.probability(putHistory.promptClass(record));
    }
}
