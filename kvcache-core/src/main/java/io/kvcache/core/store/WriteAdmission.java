package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.GhostCache;
import io.kvcache.core.policy.NoveltyClass;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.store.SlotAllocator.SlotClassPolicies;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tree.ObjectLinks;
import io.kvcache.core.tree.RecordFlags;
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

    /// What is remembered of puts: of which kind each was and when, and how often what was put has been
    /// used; of records that nobody has any more too, in [GhostCache], of twice as many as there are
    /// records.
    ///
    /// Time is the bytes that were put, in steps of 64 KiB. All that takes 6 bytes of heap a record and
    /// 16 to 32 for what has left, of which there is a sixteenth of the heap at most.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class PutHistory {

        private static final int STEP_SHIFT = 16;

        /// [GhostCache] has steps of 16.
        private static final int READING_SHIFT = 4;

        private final RecordPool pool;
        private final ObjectLinks objectLinks;
        private final GhostCache ghostCache;
        private final short[] kinds;
        private final int[] times;
        private long bytes;

        PutHistory(RecordPool pool, ObjectLinks chains) {
            this.pool = pool;
            this.objectLinks = chains;
            ghostCache = new GhostCache(Math.min(2L * pool.capacity(), maxGhosts()));
            kinds = new short[pool.capacity()];
            times = new int[pool.capacity()];
        }

        /// A sixteenth of the heap, whatever the store: an entry takes 8 bytes, and twice as many may
        /// be made as are asked for.
        private static long maxGhosts() {
            return Runtime.getRuntime().maxMemory() / 16 / (2 * Long.BYTES);
        }

        /// A block is about to be put. Behind one that is of a prompt's last blocks and that nobody has
        /// used it is of the same prompt.
        ///
        /// @param blocks of its prompt from this one on, or 0 when nobody knows
        void onPutStarted(int record, int blocks) {
            int parent = pool.parent(record);
            boolean unused = parent != NONE && RecordFlags.uses(pool.flags(parent)) == 0;
            int depth = pool.depth(record);
            if (blocks == 0) {
                kinds[record] = (short) PromptClass.ofSingleBlock(depth);
            } else if (unused && !PromptClass.isSingleBlock(kinds[parent])) {
                kinds[record] = kinds[parent];
            } else {
                kinds[record] = (short) PromptClass.of(blocks, depth);
            }
        }

        /// A record was put. Objects have their place in a chain by now.
        void onPut(int record) {
            bytes += pool.bytes(record);
            times[record] = now();
            if (RecordFlags.isObject(pool.flags(record))) {
                kinds[record] = (short) PromptClass.ofSingleBlock(objectLinks.depth(record));
            }
        }

        /// An object takes the place of another.
        void onReplacing(int record, int older) {
            kinds[record] = kinds[older];
            times[record] = times[older];
        }

        /// An object was put in place of another.
        void onReplaced(int record) {
            bytes += pool.bytes(record);
        }

        /// The [PromptClass] of a record.
        int promptClass(int record) {
            return kinds[record];
        }

        /// Bytes that were put since a record was.
        long bytesSincePut(int record) {
            return elapsed(times[record]);
        }

        private long elapsed(int time) {
            return Integer.toUnsignedLong(now() - time) << STEP_SHIFT;
        }

        private int now() {
            return (int) (bytes >>> STEP_SHIFT);
        }

        /// A record has left, nobody has it any more, and it may be put again.
        void onForgotten(int record) {
            int uses = RecordFlags.uses(pool.flags(record));
            int known = uses > 0 ? uses - 1 : RecordFlags.MAX_USES + kinds[record];
            long now = bytes >>> STEP_SHIFT;
            long put = now - (bytesSincePut(record) >>> STEP_SHIFT);
            ghostCache.put(pool.fingerprint(record), known, Math.max(0, put) << READING_SHIFT, now << READING_SHIFT);
        }

        /// What was known of a record when it left, or null.
        @Nullable
        PastPut takeGhost(int record) {
            long entry = ghostCache.remove(pool.fingerprint(record));
            if (entry == GhostCache.NONE) {
                return null;
            }
            int known = GhostCache.classOf(entry);
            int uses = known < RecordFlags.MAX_USES ? known + 1 : 0;
            long put = GhostCache.lastUse(entry, (bytes >>> STEP_SHIFT) << READING_SHIFT) >>> READING_SHIFT;
            return new PastPut(uses, uses > 0 ? 0 : known - RecordFlags.MAX_USES, elapsed((int) put));
        }

        /// What was known of a record that has come back.
        ///
        /// @param kind of its put, when it was not used after that
        /// @param since bytes that were put since it was
        record PastPut(int uses, int kind, long since) {}
    }

    /// Kinds of puts, which differ in how likely what is put is used again: by how many blocks of a
    /// prompt were put at once and how many were here before them, each in powers of two. A long prompt
    /// that nobody has begun before, a next turn and an answer's few blocks are of different kinds, and
    /// a block is of the kind of what it was put with.
    ///
    /// Of what is put alone nobody knows how much follows: its kind is its depth, in steps of about one
    /// half.
    static final class PromptClass {

        /// Steps of a number of blocks; more than 65,535 count as those.
        private static final int STEPS = 17;

        private static final int MAX_BLOCKS = (1 << (STEPS - 1)) - 1;

        /// The first of the kinds by depth, of which there are two for each power of two.
        private static final int FIRST_SINGLE_BLOCK = (STEPS - 1) * STEPS;

        /// How many kinds there are.
        static final int COUNT = FIRST_SINGLE_BLOCK + 2 * STEPS - 1;

        /// How many groups of kinds there are: those of as many blocks, and those by depth.
        static final int GROUPS = STEPS;

        private PromptClass() {}

        /// Of the last blocks of a prompt.
        ///
        /// @param blocks that are put, at least 1
        /// @param before blocks that were here
        static int of(int blocks, int before) {
            return (step(blocks) - 1) * STEPS + step(before);
        }

        /// Of what is put alone.
        ///
        /// @param depth blocks before it
        static int ofSingleBlock(int depth) {
            int place = Math.min(depth, MAX_BLOCKS) + 1;
            int power = Integer.SIZE - 1 - Integer.numberOfLeadingZeros(place);
            return FIRST_SINGLE_BLOCK + 2 * power + (power == 0 ? 0 : (place >>> (power - 1)) & 1);
        }

        static boolean isSingleBlock(int kind) {
            return kind >= FIRST_SINGLE_BLOCK;
        }

        /// 0 to [#GROUPS], exclusive.
        static int group(int kind) {
            return Math.min(kind / STEPS, GROUPS - 1);
        }

        /// 0 for none, 1 for one, 2 up to three and so on.
        private static int step(int blocks) {
            return Integer.SIZE - Integer.numberOfLeadingZeros(Math.min(blocks, MAX_BLOCKS));
        }
    }

    /// Finds the [NoveltyClass] of a block that is put: how much of its prompt, from the first block put on,
    /// nobody remembers.
    ///
    /// Blocks of a prompt come one by one, and a prompt that is computed in parts comes with a chain
    /// that grows: what is put behind a block that nobody has used since it was put, and that was not on
    /// disk alone, is of the same cohort.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class NoveltyClassifier {

        private final RecordPool pool;
        private final SlotClassPolicies policies;
        private final MemoryShares shares;

        NoveltyClassifier(RecordPool pool, SlotClassPolicies policies, MemoryShares shares) {
            this.pool = pool;
            this.policies = policies;
            this.shares = shares;
        }

        /// The cohort of a block of a chain, which nobody has.
        ///
        /// @param parent the record before it, or [io.kvcache.core.policy.RecordView#NONE]
        int classify(NamespaceEntry entry, BlockChain chain, int index, int parent) {
            int before = parent == NONE ? 0 : pool.flags(parent);
            if (RecordFlags.has(before, RecordFlags.FRESH) && RecordFlags.noveltyClass(before) >= 0) {
                return RecordFlags.noveltyClass(before);
            }
            EvictionPolicy policy = policies.find(entry.slotClass().id(), shares.groupOf(entry.id()));
            int known = policy == null ? index : firstUnknown(policy, chain, index);
            return NoveltyClass.of((long) (chain.length() - known) * chain.blockTokens());
        }

        /// The first block from one on that a policy does not remember, or the chain's length: it
        /// remembers a chain up to some block, but for few.
        private static int firstUnknown(EvictionPolicy policy, BlockChain chain, int from) {
            int low = from;
            int high = chain.length();
            while (low < high) {
                int middle = (low + high) >>> 1;
                if (policy.hasGhost(chain.keyLo(middle))) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            return low;
        }
    }
}
