package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.policy.GhostCache;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tree.ObjectLinks;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import org.jspecify.annotations.Nullable;

/// Decides which records are worth a write to disk, by the value they promise.
///
/// **By value.** The promise of a record is a product of three factors. They are its odds of another use
/// ([ReuseProbability]), the root of its recompute cost relative to the mean of all puts ([RecomputeCost]), and
/// its weight from callers ([PolicyState#weight]). A record that was used again counts as one further use.
/// [AdmissionThreshold] sets the least promise, so that a fixed share of all puts is written. The root is halfway
/// between saving most prefill, which is dear far into long prompts, and finding most blocks.
///
/// A use counts for the odds when it comes while a copy would lie on disk: until the puts since then would fill
/// all disks, of which [AdmissionKind#WRITTEN_SHARE] is written.
///
/// **Evicted records.** Uses of records that have left are remembered ([PutHistory]): one that returns counts as
/// used, for the kind of its first put. Uses of records that were evicted from a disk are remembered by value
/// alone. Under second-hit, remembering them wrote two fifths more on the synthetic trace, and found less.
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

    /// Called when a disk with room for this many bytes was added.
    void onDiskAdded(long bytes) {
        stay += bytes / AdmissionKind.WRITTEN_SHARE;
    }

    /// Returns the recompute cost of records.
    RecomputeCost recomputeCost() {
        return cost;
    }

    /// A record is about to be put.
    ///
    /// @param blocks of its prompt from this one on, or 0 when unknown
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

    /// A record was found that a disk had before. Whether it was used since it was put is not known
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

    /// A record has left every tier, and it may be put again.
    void onForgotten(int record) {
        if (putHistory != null) {
            putHistory.onForgotten(record);
        }
    }

    /// Adds bytes that will be written; negative for those that will not be written after all.
    void addWrittenBytes(long bytes) {
        admissionThreshold.onWritten(bytes);
    }

    /// Returns whether a known record is worth a write now.
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

    /// History of puts: kind and time of each, and the number of uses since. Records that have left every tier
    /// stay in [GhostCache], which holds twice as many as there are records.
    ///
    /// Time is the bytes that were put, in steps of 64 KiB. All that takes 6 bytes of heap a record. Records that
    /// have left take 16 to 32 bytes, a sixteenth of the heap at most.
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

        /// A block is about to be put. Behind one that is of a prompt's last blocks and that no request has
        /// used it is of the same prompt.
        ///
        /// @param blocks of its prompt from this one on, or 0 when unknown
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

        /// A record has left every tier, and it may be put again.
        void onForgotten(int record) {
            int uses = RecordFlags.uses(pool.flags(record));
            int known = uses > 0 ? uses - 1 : RecordFlags.MAX_USES + kinds[record];
            long now = bytes >>> STEP_SHIFT;
            long put = now - (bytesSincePut(record) >>> STEP_SHIFT);
            ghostCache.put(pool.fingerprint(record), known, Math.max(0, put) << READING_SHIFT, now << READING_SHIFT);
        }

        /// Returns the history of a record as of its eviction, or null.
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

        /// History of a record that has come back.
        ///
        /// @param kind of its put, when it was not used after that
        /// @param since bytes that were put since it was
        record PastPut(int uses, int kind, long since) {}
    }

    /// Kinds of puts, which differ in the odds of another use. A kind is the number of blocks of a prompt that
    /// were put at once and the number that were here before them, each in powers of two. A long prompt that no
    /// request has begun before, a next turn and an answer's few blocks are of different kinds. A block is of the
    /// kind of the put that it came with.
    ///
    /// A block that is put alone does not say how many follow. Its kind is its depth, in steps of about one half.
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

        /// Returns the kind of the last blocks of a prompt.
        ///
        /// @param blocks blocks that are put, at least 1
        /// @param before blocks that were here before
        static int of(int blocks, int before) {
            return (step(blocks) - 1) * STEPS + step(before);
        }

        /// Returns the kind of a block that is put alone.
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

    /// Least promise that makes a block worth a write, so that only the most promising share of all puts is
    /// written. A promise of 1 is one certain use of a block of mean cost, see [WriteAdmission].
    ///
    /// After each window of puts the threshold moves by the distance between the written share and the target. It
    /// is never below the cost of a write by itself, so less than the target is written when too few blocks are
    /// worth it.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class AdmissionThreshold {

        /// Puts after which the price moves. In a model of both published traces a fourth and four times of it
        /// change what is written by up to five points and hits by less than one.
        private static final int WINDOW = 256;

        /// How far: a window in which everything is written makes a write dearer by a sixth. The same holds of
        /// a fourth and four times of this.
        private static final double STEP = 0.25;

        /// Above what blocks of usual prompts promise; a higher price would only take longer to fall
        /// again after a flush has written everything.
        private static final double MAX_THRESHOLD = 16;

        private final double share;
        private final double floor;
        private double threshold;
        private int puts;
        private long putBytes;
        private long writtenBytes;

        /// @param share of the bytes that are put that may be written, above 0
        /// @param gain what one use saves in units of what the write costs, above 0
        AdmissionThreshold(double share, double gain) {
            this.share = share;
            floor = Math.min(1, 1 / gain);
            threshold = floor;
        }

        void onPut(long bytes) {
            putBytes += bytes;
            if (++puts == WINDOW) {
                double wrote = Math.min(1, (double) writtenBytes / putBytes);
                threshold = Math.clamp(threshold * Math.exp(STEP * (wrote - share)), floor, MAX_THRESHOLD);
                puts = 0;
                putBytes = 0;
                writtenBytes = 0;
            }
        }

        void onWritten(long bytes) {
            writtenBytes += bytes;
        }

        /// Promise below which a block is not written, 0 to 16.
        double threshold() {
            return threshold;
        }
    }

    /// How likely a block is used again soon, by the kind of its put, learned from those that were.
    ///
    /// Few blocks of a [PromptClass] have the odds of the others of its group, few of a group those of all
    /// others, and a few imagined blocks keep the first answers sober. What was counted halves now and
    /// then, so that the odds follow the load.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class ReuseProbability {

        /// Blocks after which all counts are halved.
        private static final long WINDOW = 1 << 20;

        /// Imagined blocks, and those of them that were used again: two in five, as in the conversation
        /// trace.
        private static final double PRIOR_BLOCKS = 20;

        private static final double PRIOR_AGAIN = 8;

        private final Counts all = new Counts(1);
        private final Counts groups = new Counts(PromptClass.GROUPS);
        private final Counts kinds = new Counts(PromptClass.COUNT);
        private long counted;

        /// Blocks that were put, and those of them that were used again.
        @SuppressWarnings("ArrayRecordComponent") // counted up in place; nothing compares them with equals
        private record Counts(long[] put, long[] reused) {

            Counts(int size) {
                this(new long[size], new long[size]);
            }

            void halve() {
                for (int at = 0; at < put.length; at++) {
                    put[at] /= 2;
                    reused[at] /= 2;
                }
            }
        }

        /// A block was put.
        void onPut(int kind) {
            all.put[0]++;
            groups.put[PromptClass.group(kind)]++;
            kinds.put[kind]++;
            decay();
        }

        /// A block that was put was used for the first time, and soon enough.
        void onFirstUse(int kind) {
            all.reused[0]++;
            groups.reused[PromptClass.group(kind)]++;
            kinds.reused[kind]++;
            decay();
        }

        /// The probability, 0 to 1, that a block whose put has this kind is used again.
        double probability(int kind) {
            int group = PromptClass.group(kind);
            double ofOthers = estimate(
                    all.reused[0] - groups.reused[group], all.put[0] - groups.put[group], PRIOR_AGAIN / PRIOR_BLOCKS);
            double ofGroup =
                    estimate(groups.reused[group] - kinds.reused[kind], groups.put[group] - kinds.put[kind], ofOthers);
            return Math.min(1, estimate(kinds.reused[kind], kinds.put[kind], ofGroup));
        }

        private static double estimate(long again, long put, double without) {
            return (again + PRIOR_BLOCKS * without) / (put + PRIOR_BLOCKS);
        }

        private void decay() {
            if (++counted == WINDOW) {
                counted = 0;
                all.halve();
                groups.halve();
                kinds.halve();
            }
        }
    }

    /// Cost of computing a block again, relative to the mean of all blocks put.
    ///
    /// A token looks back at all before it, so the farther into its prompt a block lies the more it takes, and it
    /// takes twice as much as a first block's behind [PrefillCost#doublingTokens]. Blocks of several models count
    /// as equally dear at equal parts of that. Nothing is known of objects: they take the mean.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class RecomputeCost {

        /// Until it is set: Llama 3 8B, of which a token takes two operations for each of 8 billion
        /// parameters, and half a million for each token that it looks back at.
        private static final double DOUBLING_TOKENS = 30_600;

        /// Puts over which the mean is taken.
        private static final int MEAN_OF = 1 << 14;

        private final RecordPool pool;
        private final NamespaceRegistry namespaceRegistry;
        private double doublingTokens = DOUBLING_TOKENS;
        private double mean = 1;
        private long puts;

        RecomputeCost(RecordPool pool, NamespaceRegistry namespaceRegistry) {
            this.pool = pool;
            this.namespaceRegistry = namespaceRegistry;
        }

        /// Goes by what an engine takes from now on.
        void setPrefillCost(PrefillCost prefill) {
            doublingTokens = prefill.doublingTokens();
            puts = 0;
        }

        /// A record was put.
        void onPut(int record) {
            if (!RecordFlags.isObject(pool.flags(record))) {
                puts = Math.min(MEAN_OF, puts + 1);
                mean += (cost(record) - mean) / puts;
            }
        }

        /// Returns the cost of a record in units of the mean, above 0.
        double relativeCost(int record) {
            return RecordFlags.isObject(pool.flags(record)) ? 1 : cost(record) / mean;
        }

        /// In units of what the first block of its prompt takes.
        private double cost(int record) {
            int namespace = RecordFlags.namespaceId(pool.flags(record));
            double tokens = namespaceRegistry.byId(namespace).namespace().blockTokens();
            return 1 + (pool.depth(record) + 0.5) * tokens / doublingTokens;
        }
    }
}
