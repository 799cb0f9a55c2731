package io.kvcache.core.policy;

import io.kvcache.core.policy.LabelClasses.BlockLabel;
import io.kvcache.core.policy.LabelClasses.TurnGap;
import io.kvcache.core.policy.LruFallback.ShadowLru;
import java.util.Arrays;
import java.util.function.IntConsumer;
import java.util.function.IntPredicate;
import java.util.function.LongConsumer;

/// Evicts the leaf that is expected to give the fewest uses for the memory it holds, as learned from past uses.
///
/// **Mechanism.** Blocks fall into classes by what can be seen of them: how often they were used; whether the
/// request that used it last ended there, as a partial or last block seldom returns; how much of a prompt was new
/// when it came ([NoveltyClass]); how long its session took to return ([LabelClasses.TurnGap]). [ReuseModel]
/// learns for each class how soon a block of some age is used again, from resident and evicted blocks alike
/// ([ReuseTracker]), and what it is worth. Leaves wait in [AgeBucketLists] by class and age, so a victim is the
/// head of the list that is worth least: every leaf is considered, none is sampled.
///
/// A parent never goes before its child, as only leaves go. Before it has learned it is about LRU.
///
/// **Slower tiers.** A block that a disk has too is worth the cost of reading it, as a share of the cost of
/// computing it ([PolicyState#reloadCostRatio]). So it goes before one that would be lost.
///
/// **When it is wrong.** [LruFallback] compares it with LRU all the time, and has it order by last use alone
/// while that is better.
///
/// **Labels and weights.** Callers may label a block with a class of requests. Its reuse is then learned for that
/// class apart, so a wrong label is found out, and costs hits until then. They may also weigh how much its content
/// matters: its score is multiplied by that, down to an eighth. [LabelClasses] has the lists for these; without
/// labels there is one lane.
///
/// **Announcements.** Blocks that a waiting request will use are exempt while anything else can go. When nothing
/// else can, those announced last go first. An announcement that does not come true is forgotten.
///
/// **Cost.** 17 bytes a record, and 32 to 64 for each resident block for the memory of evicted ones. An
/// instance takes six tenths of a MB, two tenths more for each lane but the first, of which turn gaps have
/// five, and one MiB more once anything is announced, with 8 bytes for each use that is (8 MiB at most). It
/// needs a call for each block of a path that is used: the number of uses is the strongest signal.
///
/// Source: our own, on the ideas of LHD (Beckmann et al., NSDI 2018) and the workload-aware policy of
/// "KVCache cache in the wild" (Wang et al., USENIX ATC 2025).
public final class ImportancePolicy implements EvictionPolicy {

    private static final int UNDECIDED = -1;

    private final RecordView records;
    private final PolicyState state;
    private final AgeBucketLists buckets;
    private final LabelClasses labelClasses = new LabelClasses();
    private final ReuseTracker reuseTracker;
    private final CandidateIndex candidateIndex;
    private final AccessClock clock;
    private final AnnouncedRequests announcedRequests = new AnnouncedRequests();
    private final AdmissionGuard admissionGuard;
    private final IntConsumer postponeAction = this::postpone;
    private int size;
    /// The block before the one touched last: if it is touched next, it belongs to the same request.
    private int previous = NONE;
    /// [LabelClasses.TurnGap] of the request whose blocks are being used: that of the first that tells.
    private int turnGap = UNDECIDED;

    /// @param state shared with the store's other instances
    public ImportancePolicy(RecordView records, PolicyState state) {
        this(records, state, ImportanceConfig.DEFAULT);
    }

    /// @param state shared with the store's other instances
    /// @param rules the constants
    public ImportancePolicy(RecordView records, PolicyState state, ImportanceConfig rules) {
        if (records.capacity() != state.capacity()) {
            throw new IllegalArgumentException(
                    "policy state is for " + state.capacity() + " records, the view has " + records.capacity());
        }
        this.records = records;
        this.state = state;
        reuseTracker = new ReuseTracker(rules, state, labelClasses);
        buckets = reuseTracker.buckets();
        candidateIndex = new CandidateIndex(records, state, buckets, labelClasses);
        clock = new AccessClock(state, reuseTracker, this::expireAnnouncements);
        admissionGuard = new AdmissionGuard(reuseTracker::density);
    }

    @Override
    public void admit(int record) {
        assertAbsent(record);
        long fingerprint = records.fingerprint(record);
        boolean copied = records.hasCopy(record);
        clock.recordOutcome(false, copied, fingerprint);
        continueRequest(records.parent(record));
        long ghost = reuseTracker.onReturn(fingerprint, state.now());
        byte label = labelOnReturn(ghost, records.parent(record));
        long word = initialState(record, ghost, copied);
        candidateIndex.add(record, label);
        candidateIndex.setState(record, announcedRequests.stateAfterUse(word, fingerprint, horizon()));
        begin(record);
        size++;
        onBecameLeaf(record);
        compareAdmission(fingerprint, candidateIndex.labelClassOf(record), ImportanceWord.withContinuation(word));
    }

    /// {@inheritDoc}
    ///
    /// Until its first use only its ghost entry counts, as if it had not come.
    @Override
    public void onPrefetched(int record) {
        assertAbsent(record);
        int parent = records.parent(record);
        if (parent != RecordView.NONE && candidateIndex.contains(parent)) {
            candidateIndex.removeFromList(parent);
        }
        long fingerprint = records.fingerprint(record);
        long ghost = reuseTracker.ghostOf(fingerprint);
        long word = ImportanceWord.of(
                candidateIndex.owner(), ReuseTracker.useStepOf(ghost), records.noveltyClass(record), state.now());
        candidateIndex.add(record, labelClasses.blockLabelOf(ReuseTracker.labelOf(ghost)));
        word = ImportanceWord.withCopied(word, records.hasCopy(record));
        candidateIndex.setState(record, announcedRequests.stateWithoutUse(word, fingerprint, horizon()));
        size++;
        onBecameLeaf(record);
    }

    @Override
    public boolean hasGhost(long fingerprint) {
        return reuseTracker.hasGhost(fingerprint);
    }

    @Override
    public void touch(int record) {
        if (!candidateIndex.contains(record)) {
            return;
        }
        if (ImportanceWord.status(candidateIndex.stateOf(record)) == ImportanceWord.PREFETCHED) {
            countFirstUse(record);
            return;
        }
        clock.recordOutcome(true, ImportanceWord.isCopied(candidateIndex.stateOf(record)), records.fingerprint(record));
        long now = clock.onUse(size);
        long word = candidateIndex.stateOf(record);
        boolean last = followRequest(record);
        reuseTracker.onUse(candidateIndex.labelClassOf(record), word, now);
        byte label = labelAfterUse(record, word, now);
        long used = ImportanceWord.withUse(word, last, now);
        candidateIndex.updateState(
                record, announcedRequests.stateAfterUse(used, records.fingerprint(record), horizon()), label);
        begin(record);
        compareAdmission(records.fingerprint(record), candidateIndex.labelClassOf(record), used);
    }

    @Override
    public boolean touchesAncestors() {
        return true;
    }

    @Override
    public void onContinued(int record) {
        continueRequest(record);
    }

    @Override
    public void onBecameLeaf(int record) {
        if (candidateIndex.contains(record)
                && !candidateIndex.isListed(record)
                && records.residentChildren(record) == 0) {
            candidateIndex.addToList(record);
        }
    }

    @Override
    public void forget(int record) {
        assertResident(record);
        clock.lruFallback().onRemoved(records.fingerprint(record));
        admissionGuard.onRemoved(records.fingerprint(record));
        candidateIndex.removeFromList(record);
        end(record);
        candidateIndex.setState(record, 0);
        size--;
    }

    @Override
    public void onEvicted(int record) {
        assertResident(record);
        candidateIndex.removeFromList(record);
        depart(record);
    }

    @Override
    public void demote(int record) {
        assertResident(record);
        if (ImportanceWord.status(candidateIndex.stateOf(record)) == ImportanceWord.PREFETCHED) {
            reuseTracker.removeGhost(records.fingerprint(record)); // it counts as resident from now on
        }
        setState(record, ImportanceWord.withStatus(candidateIndex.stateOf(record), ImportanceWord.DEMOTED));
        onBecameLeaf(record);
    }

    @Override
    public void label(int record, int reuseClass) {
        setLabel(record, BlockLabel.of(reuseClass, BlockLabel.halvings(candidateIndex.labelOf(record))));
    }

    @Override
    public void setWeight(int record, int halvings) {
        setLabel(record, BlockLabel.of(BlockLabel.reuseClass(candidateIndex.labelOf(record)), halvings));
    }

    /// {@inheritDoc}
    ///
    /// The model counts this as the use, so it learns how long it takes until a use is known.
    @Override
    public void expect(int record) {
        if (candidateIndex.contains(record)
                && ImportanceWord.status(candidateIndex.stateOf(record)) != ImportanceWord.EXPECTED) {
            long now = clock.tick(size);
            long word = candidateIndex.stateOf(record);
            reuseTracker.onUse(candidateIndex.labelClassOf(record), word, now);
            candidateIndex.updateState(
                    record, ImportanceWord.withStamp(ImportanceWord.withStatus(word, ImportanceWord.EXPECTED), now));
            begin(record);
        }
    }

    @Override
    public void announce(long fingerprint) {
        reuseTracker.onAnnounced(fingerprint, state.now());
        announcedRequests.add(fingerprint, state.now(), horizon());
    }

    @Override
    public void onCopyChanged(int record) {
        long word = candidateIndex.stateOf(record);
        if (candidateIndex.contains(record) && ImportanceWord.isCopied(word) != records.hasCopy(record)) {
            setState(record, ImportanceWord.withCopied(word, !ImportanceWord.isCopied(word)));
        }
    }

    @Override
    public void onUsedElsewhere(int record) {
        boolean last = followRequest(record);
        useElsewhere(records.fingerprint(record), records.noveltyClass(record), last);
    }

    /// {@inheritDoc}
    ///
    /// It is worth less if blocks of its class and of an age of a tenth of the cache are worth less than the
    /// victim, as long as [AdmissionGuard] finds that declining pays. Before a victim that an announced request
    /// will use, it is worth more if an earlier one will use it.
    @Override
    public boolean admits(long fingerprint, int novelty) {
        int lowest = candidateIndex.lowestRecord();
        if (lowest == NONE) {
            return true;
        }
        long victim = candidateIndex.stateOf(lowest);
        long announced = announcedRequests.nextAfterUse(fingerprint, state.now(), horizon());
        if (ImportanceWord.status(victim) == ImportanceWord.EXPECTED) {
            return announced != AnnouncedRequests.NONE && announced < ImportanceWord.stamp(victim);
        }
        if (announced != AnnouncedRequests.NONE
                || !admissionGuard.isDeclining()
                || clock.lruFallback().followsLru()) {
            return true;
        }
        long ghost = reuseTracker.ghostOf(fingerprint);
        long word = ImportanceWord.withContinuation(ImportanceWord.of(
                candidateIndex.owner(), ReuseTracker.usesOf(ghost, state.now()), novelty, state.now()));
        int lane = labelClasses.classOfLabel(ReuseTracker.labelOf(ghost));
        return reuseTracker.score(lane, word, state.now() + AdmissionGuard.trustedAge(size), false) >= lowestScore();
    }

    @Override
    public void onDeclined(long fingerprint, int novelty, boolean last) {
        clock.recordOutcome(false, false, fingerprint);
        announcedRequests.fulfil(fingerprint, state.now(), horizon());
        useElsewhere(fingerprint, novelty, last);
    }

    private void useElsewhere(long fingerprint, int novelty, boolean last) {
        long ghost = reuseTracker.onReturn(fingerprint, state.now());
        long word = ImportanceWord.of(
                candidateIndex.owner(), ReuseTracker.usesOf(ghost, state.now()), novelty, clock.tick(size));
        long left = last ? word : ImportanceWord.withContinuation(word);
        int lane = labelClasses.classOfLabel(ReuseTracker.labelOf(ghost));
        reuseTracker.addResident(lane, left);
        reuseTracker.onEvicted(fingerprint, lane, left, size);
        compareAdmission(fingerprint, lane, left);
    }

    private void compareAdmission(long fingerprint, int lane, long word) {
        admissionGuard.onUse(fingerprint, reuseTracker.kind(lane, word), state.now());
    }

    @Override
    public double score(int record) {
        boolean byAge = clock.lruFallback().followsLru();
        return candidateIndex.contains(record)
                ? reuseTracker.score(
                        candidateIndex.labelClassOf(record), candidateIndex.stateOf(record), state.now(), byAge)
                : reuseTracker.ghostScore(records.fingerprint(record), state.now(), horizon(), byAge);
    }

    @Override
    public double lowestScore() {
        int lowest = candidateIndex.lowestRecord();
        return lowest == NONE ? 0 : score(lowest);
    }

    @Override
    public int evict(IntPredicate claim) {
        int victim = candidateIndex.takeLowest(claim, postponeAction);
        if (victim != NONE) {
            clock.lruFallback().onFull(size);
            admissionGuard.onFull(size);
            depart(victim);
        }
        return victim;
    }

    /// {@inheritDoc}
    ///
    /// Above three by the steps of [ImportanceWord#nextUseStep], so within a factor of two, and of eight above 513.
    /// About 1.2 million stands for all that is more.
    @Override
    public int uses(int record) {
        return ImportanceWord.expectedUses(ImportanceWord.uses(candidateIndex.stateOf(record)));
    }

    @Override
    public long lastUse(int record) {
        return ImportanceWord.stamp(candidateIndex.stateOf(record));
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public long victimLastUse() {
        int lowest = candidateIndex.lowestRecord();
        return lowest == NONE ? Long.MAX_VALUE : ImportanceWord.stamp(candidateIndex.stateOf(lowest));
    }

    /// Returns the bytes of this instance's tables, without the memory of evicted blocks.
    @Override
    public long heapBytes() {
        return reuseTracker.bytes() + ShadowLru.BYTES + admissionGuard.bytes() + announcedRequests.bytes();
    }

    /// Returns the bytes of the memory of evicted blocks.
    public long ghostBytes() {
        return reuseTracker.ghostBytes();
    }

    @Override
    public LruFallback.Report fallbackReport() {
        return clock.lruFallback().report();
    }

    /// Checks the counts of all remembered blocks.
    void validate() {
        reuseTracker.validate(candidateIndex, records.capacity());
    }

    private void assertAbsent(int record) {
        assert ImportanceWord.owner(candidateIndex.stateOf(record)) == 0 : "record " + record + " is here already";
    }

    private void assertResident(int record) {
        assert candidateIndex.contains(record) : "record " + record + " is not here";
    }

    private void begin(int record) {
        reuseTracker.addResident(candidateIndex.labelClassOf(record), candidateIndex.stateOf(record));
    }

    private void end(int record) {
        reuseTracker.removeResident(candidateIndex.labelClassOf(record), candidateIndex.stateOf(record));
    }

    private void depart(int record) {
        reuseTracker.onEvicted(
                records.fingerprint(record), candidateIndex.labelClassOf(record), candidateIndex.stateOf(record), size);
        candidateIndex.setState(record, 0);
        size--;
    }

    /// Changes the word of a record without a use.
    private void setState(int record, long word) {
        end(record);
        candidateIndex.updateState(record, word);
        begin(record);
    }

    /// Moves a record to another lane.
    private void setLabel(int record, byte said) {
        if (!candidateIndex.contains(record) || candidateIndex.labelOf(record) == said) {
            return;
        }
        addLabel(said);
        end(record);
        candidateIndex.updateState(record, candidateIndex.stateOf(record), said);
        begin(record);
    }

    /// Follows a request to a block that it uses, and returns whether it ends there, as it does at the first one
    /// that it touches.
    private boolean followRequest(int record) {
        boolean last = record != previous;
        previous = records.parent(record);
        turnGap = last ? UNDECIDED : turnGap;
        return last;
    }

    /// Returns the label of a block that was here and is used.
    ///
    /// @param word its word before
    private byte labelAfterUse(int record, long word, long now) {
        byte before = candidateIndex.labelOf(record);
        if (turnGap == UNDECIDED && ImportanceWord.status(word) != ImportanceWord.EXPECTED) {
            turnGap = TurnGap.afterTurn(BlockLabel.turnGap(before), now - ImportanceWord.stamp(word), size);
        }
        return turnGap == UNDECIDED || BlockLabel.isGiven(before) ? before : labelOf(turnGap);
    }

    /// Returns the label of blocks with a turn gap, which has a lane then.
    private byte labelOf(int gap) {
        byte label = BlockLabel.ofTurnGap(gap);
        addLabel(label);
        return label;
    }

    /// Sees that a label has a lane.
    private void addLabel(byte label) {
        if (reuseTracker.ensureLabel(label)) {
            clock.rank();
        }
    }

    /// Returns the label of a block that is used and was not here.
    private byte labelOnReturn(long ghost, int parent) {
        byte left = labelClasses.blockLabelOf(ReuseTracker.labelOf(ghost));
        if (BlockLabel.isGiven(left)) {
            return left;
        }
        if (ReuseTracker.isTracked(ghost)) {
            long age = ReuseTracker.ageOf(ghost, state.now());
            return labelOf(TurnGap.afterTurn(BlockLabel.turnGap(left), age, size));
        }
        return parent == NONE || !candidateIndex.contains(parent)
                ? BlockLabel.NONE
                : BlockLabel.ofTurnGap(BlockLabel.turnGap(candidateIndex.labelOf(parent)));
    }

    /// A leaf in use counts as used now, but the policy does not learn from that.
    private void postpone(int record) {
        long used = ImportanceWord.withStamp(candidateIndex.stateOf(record), state.tick());
        boolean demoted = ImportanceWord.status(used) == ImportanceWord.DEMOTED;
        setState(record, demoted ? ImportanceWord.withStatus(used, ImportanceWord.NORMAL) : used);
        candidateIndex.addToList(record);
    }

    /// A request continues behind a block, which is not a leaf any more.
    private void continueRequest(int record) {
        if (record == RecordView.NONE || !candidateIndex.contains(record)) {
            return;
        }
        candidateIndex.removeFromList(record);
        if (ImportanceWord.isLast(candidateIndex.stateOf(record))) {
            setState(record, ImportanceWord.withContinuation(candidateIndex.stateOf(record)));
        }
    }

    /// The first use of a block whose arrival was not a use: counts as its arrival.
    private void countFirstUse(int record) {
        long fingerprint = records.fingerprint(record);
        boolean copied = ImportanceWord.isCopied(candidateIndex.stateOf(record));
        clock.recordOutcome(true, copied, fingerprint);
        boolean last = followRequest(record);
        long ghost = reuseTracker.onReturn(fingerprint, state.now());
        byte label = labelOnReturn(ghost, records.parent(record));
        long word = initialState(record, ghost, copied);
        word = last ? word : ImportanceWord.withContinuation(word);
        candidateIndex.updateState(record, announcedRequests.stateAfterUse(word, fingerprint, horizon()), label);
        begin(record);
    }

    /// Returns the first word of a block that is used and was not here, or was not used since it came.
    ///
    /// @param ghost as [ReuseTracker#onReturn] has it
    private long initialState(int record, long ghost, boolean copied) {
        int uses = ReuseTracker.usesOf(ghost, state.now());
        long now = clock.onAdmit(uses > 1, size);
        return ImportanceWord.withCopied(
                ImportanceWord.of(candidateIndex.owner(), uses, records.noveltyClass(record), now), copied);
    }

    /// Drops announcements that are too old: their request will not come.
    private void expireAnnouncements(long now) {
        for (int span = 0; span < buckets.bucketCount() && buckets.age(span, now) > horizon(); span++) {
            int list = buckets.listAt(ImportanceWord.EXPECTED_CLASS, span);
            while (buckets.oldest(list) != NONE) {
                int record = buckets.oldest(list);
                setState(record, ImportanceWord.withStatus(candidateIndex.stateOf(record), ImportanceWord.NORMAL));
            }
        }
    }

    private long horizon() {
        return AnnouncedRequests.horizon(size);
    }

    /// Lets time pass with the uses of one [ImportancePolicy]'s blocks, and has its lists ranked when a turn
    /// is over or the guard steps in.
    ///
    /// **Threads.** One writer, the holder of the store's lock.
    private static final class AccessClock {

        private final PolicyState state;
        private final ReuseTracker reuseTracker;
        private final LongConsumer afterEpoch;
        private final LruFallback lruFallback = new LruFallback();
        private final ScanResistantClock scanResistantClock = new ScanResistantClock();

        /// @param afterTurn called with the clock's reading when a turn is over
        AccessClock(PolicyState state, ReuseTracker reuseTracker, LongConsumer afterTurn) {
            this.state = state;
            this.reuseTracker = reuseTracker;
            this.afterEpoch = afterTurn;
        }

        LruFallback lruFallback() {
            return lruFallback;
        }

        /// Reports a use to the guard.
        ///
        /// @param hit whether the block was here
        /// @param copied whether a slower tier has it too: losing it is not a miss, so it is not compared
        void recordOutcome(boolean hit, boolean copied, long fingerprint) {
            if (lruFallback.onUse(fingerprint, hit, copied)) {
                rank();
            }
        }

        /// Advances the clock by a use of a block that was here.
        ///
        /// @param size resident blocks
        /// @return the clock's reading
        long onUse(int size) {
            scanResistantClock.onKnownUse(size);
            return tick(size);
        }

        /// Advances the clock by a block that comes, unless too many come that were never seen.
        ///
        /// @param size resident blocks
        /// @return the clock's reading
        long onAdmit(boolean seen, int size) {
            if (seen) {
                scanResistantClock.onKnownUse(size);
            }
            return seen || scanResistantClock.advancesClock(size) ? tick(size) : state.now();
        }

        /// Advances the clock.
        ///
        /// @param size resident blocks
        /// @return the clock's reading
        long tick(int size) {
            long now = state.tick();
            if (reuseTracker.countUse()) {
                reuseTracker.advanceEpoch(now, size);
                rank();
                afterEpoch.accept(now);
            }
            return now;
        }

        /// Ranks the lists as the guard has it.
        void rank() {
            if (lruFallback.followsLru()) {
                reuseTracker.rankByAge();
            } else {
                reuseTracker.rankByScore(state.now(), state.reloadCostRatio());
            }
        }
    }

    /// Decides whether a first-time access advances the logical clock (scan resistance).
    ///
    /// Ages count in blocks used. A scan of prompts that come once would make everything old within minutes, and
    /// old blocks count as dead. So new blocks move the clock only as often as they usually come. Each block that
    /// is used again allows as many of them as came between two such blocks lately, with half a cache of them
    /// ahead. Beyond that the clock stands until a block is used again.
    ///
    /// **Threads.** One writer, the holder of the store's lock.
    static final class ScanResistantClock {

        /// Used blocks that "lately" means, as a multiple of the resident blocks.
        private static final double MEMORY = 8;

        /// New blocks ahead, as a multiple of the resident blocks: a burst of long prompts is not a scan.
        private static final double AHEAD = 0.5;

        private static final int MIN_USES = 64;

        private double meanNewPerReuse;
        private double allowed;
        private long sinceUse;
        private long uses;

        /// A block was used that was seen before.
        ///
        /// @param size resident blocks
        void onKnownUse(int size) {
            uses++;
            meanNewPerReuse +=
                    (sinceUse - meanNewPerReuse) / Math.clamp((double) uses, 1, MEMORY * Math.max(MIN_USES, size));
            sinceUse = 0;
            allowed = Math.min(allowed + meanNewPerReuse, AHEAD * Math.max(MIN_USES, size));
        }

        /// A block was used that was never seen before.
        ///
        /// @param size resident blocks
        /// @return whether the clock must move; always so before a cache full has been used again
        boolean advancesClock(int size) {
            sinceUse++;
            if (uses <= size || allowed >= 1) {
                allowed = Math.max(0, allowed - 1);
                return true;
            }
            return false;
        }
    }

    /// The words of one [ImportancePolicy]'s resident blocks, and the list that each of its leaves stands in.
    ///
    /// **Threads.** One writer, the holder of the store's lock.
    static final class CandidateIndex {

        static final int NONE = RecordView.NONE;

        /// Announced leaves of which the one goes that is wanted last.
        private static final int MAX_COMPARED = 64;

        /// Leaves that are tried before an eviction is given up.
        private static final int MAX_REFUSALS = 1024;

        private final RecordView records;
        private final AgeBucketLists buckets;
        private final LabelClasses labelClasses;
        private final long[] words;
        private final byte[] labels;
        private final int ownerId;
        private int[] refusals = new int[8];

        CandidateIndex(RecordView records, PolicyState state, AgeBucketLists buckets, LabelClasses labelClasses) {
            this.records = records;
            this.buckets = buckets;
            this.labelClasses = labelClasses;
            words = state.words();
            labels = state.labelsForWrite();
            ownerId = state.newOwner();
        }

        /// Returns the number that marks this instance's records.
        int owner() {
            return ownerId;
        }

        boolean contains(int record) {
            return ImportanceWord.owner(words[record]) == ownerId;
        }

        long stateOf(int record) {
            return words[record];
        }

        /// Changes the word of a record that stands in no list; 0 when it leaves.
        void setState(int record, long word) {
            words[record] = word;
        }

        /// Returns the lane of a record.
        int labelClassOf(int record) {
            return labelClasses.classOf(labels[record]);
        }

        /// Adds a record with this label.
        void add(int record, byte label) {
            labels[record] = label;
        }

        /// Returns the label of a record.
        byte labelOf(int record) {
            return labels[record];
        }

        boolean isListed(int record) {
            return (words[record] & ImportanceWord.LISTED) != 0;
        }

        void addToList(int record) {
            words[record] |= ImportanceWord.LISTED;
            buckets.add(listOf(record), record);
        }

        void removeFromList(int record) {
            if (isListed(record)) {
                buckets.remove(listOf(record), record);
                words[record] &= ~ImportanceWord.LISTED;
            }
        }

        /// Changes the word of a record, and its place in the lists.
        void updateState(int record, long word) {
            updateState(record, word, labels[record]);
        }

        /// Changes the word and the label of a record that is in no count at this moment, and its place in the
        /// lists.
        void updateState(int record, long word, byte label) {
            boolean listed = isListed(record);
            removeFromList(record);
            words[record] = word & ~ImportanceWord.LISTED;
            labels[record] = label;
            if (listed) {
                addToList(record);
            }
        }

        /// Returns the leaf with the lowest score, or [#NONE]; it may have children by now.
        int lowestRecord() {
            int lowest = buckets.lowestList();
            int first = lowest == AgeBucketLists.NONE ? NONE : buckets.oldest(lowest);
            return first == NONE || ImportanceWord.status(words[first]) != ImportanceWord.EXPECTED
                    ? first
                    : lastWanted(first);
        }

        /// Returns the leaf of a list that is wanted last, of the first few. Spans are long where announcements
        /// are old, and there order matters most: all that is kept is wanted by the next few requests.
        private int lastWanted(int first) {
            int last = first;
            int record = first;
            for (int i = 1; i < MAX_COMPARED && record != NONE; i++) {
                last = ImportanceWord.stamp(words[record]) > ImportanceWord.stamp(words[last]) ? record : last;
                record = buckets.newerThan(record);
            }
            return last;
        }

        /// Takes the leaf with the lowest score off its list, or returns [#NONE].
        int takeLowest() {
            int lowest = lowestRecord();
            while (lowest != NONE) {
                removeFromList(lowest);
                if (records.residentChildren(lowest) == 0) {
                    return lowest;
                }
                lowest = lowestRecord();
            }
            return NONE;
        }

        /// Takes the leaf with the lowest score among those that can be claimed off its list. Returns [#NONE] when
        /// none of the lowest can be claimed.
        ///
        /// @param refused called with leaves that could not be claimed, which are in no list then
        int takeLowest(IntPredicate claim, IntConsumer refused) {
            int count = 0;
            int victim = NONE;
            while (victim == NONE && count < MAX_REFUSALS) {
                int record = takeLowest();
                if (record == NONE) {
                    break;
                }
                if (claim.test(record)) {
                    victim = record;
                } else {
                    refusals = count < refusals.length ? refusals : Arrays.copyOf(refusals, 2 * count);
                    refusals[count++] = record;
                }
            }
            for (int i = 0; i < count; i++) {
                refused.accept(refusals[i]);
            }
            return victim;
        }

        private int listOf(int record) {
            long word = words[record];
            return ImportanceWord.status(word) == ImportanceWord.DEMOTED
                    ? AgeBucketLists.DEMOTED_LIST
                    : buckets.listFor(ImportanceWord.listOf(labelClassOf(record), word), ImportanceWord.stamp(word));
        }
    }
}
