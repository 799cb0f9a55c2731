package io.kvcache.core.policy;

import java.util.function.IntConsumer;
import java.util.function.IntPredicate;

/// Evicts the leaf that is expected to give the fewest uses for the memory it holds, by what has been
/// learned.
///
/// **Mechanism.** Blocks fall into classes by what can be seen of them: how often they were used;
/// whether the request that used it last ended there, as a partial or last block seldom returns;
/// how much of a prompt was new when it came ([Cohort]). [ReuseModel] learns for each class how soon a block of some
/// age is used again, from resident and evicted blocks alike ([Lessons]), and what it is worth. Leaves
/// wait in [LeafBuckets] by class and age, so a victim is the head of the list that is worth least:
/// every leaf is considered, none is sampled.
///
/// A parent never goes before its child, as only leaves go. Before it has learned it is about LRU.
///
/// **Slower tiers.** A block that a disk has too is worth what reading it costs, as a share of what
/// computing it does ([PolicyState#copyWorth]), so it goes before one that would be lost.
///
/// **When it is wrong.** [Guard] compares it with LRU all the time, and has it order by last use alone
/// while that is better.
///
/// **What is said of blocks.** Callers may say of which class of requests a block is: how it is
/// reused is then learned for that class apart, so what is wrong with a label is found out, and
/// costs hits until then. And how much of what a block holds matters to who reads it: what it is
/// worth is multiplied by that, down to an eighth. [Lanes] has the lists for these; as long as
/// nothing is said there is one lane.
///
/// **What is known to come.** Blocks that a waiting request will use are exempt while anything else can
/// go. When nothing else can, those announced last go first. An announcement that does not come true is
/// forgotten.
///
/// Costs 16 bytes a record, and one more once anything is said of blocks, 32 to 64 for each
/// resident block for what is remembered of evicted ones, and four tenths of a MB an instance, with
/// a MiB more once anything is announced, and two tenths of one for each lane but the first. It is
/// told of all blocks of a path, and needs to be: how often a block was used is what speaks most.
///
/// Source: our own, on the ideas of LHD (Beckmann et al., NSDI 2018) and the workload-aware policy of
/// "KVCache cache in the wild" (Wang et al., USENIX ATC 2025).
public final class Importance implements EvictionPolicy {

    private final RecordView records;
    private final PolicyState state;
    private final LeafBuckets buckets;
    private final Lanes lanes = new Lanes();
    private final Lessons lessons;
    private final Leaves leaves;
    private final UseClock clock;
    private final Expectations expectations = new Expectations();
    private final IntConsumer putOff = this::putOff;
    private int size;
    /// The block before the one touched last: if it is touched next, it belongs to the same request.
    private int before = NONE;

    /// @param state shared with the store's other instances
    public Importance(RecordView records, PolicyState state) {
        this(records, state, ImportanceRules.DEFAULT);
    }

    /// @param state shared with the store's other instances
    /// @param rules the constants
    public Importance(RecordView records, PolicyState state, ImportanceRules rules) {
        if (records.capacity() != state.capacity()) {
            throw new IllegalArgumentException(
                    "policy state is for " + state.capacity() + " records, the view has " + records.capacity());
        }
        this.records = records;
        this.state = state;
        lessons = new Lessons(rules, state, lanes);
        buckets = lessons.buckets();
        leaves = new Leaves(records, state, buckets, lanes);
        clock = new UseClock(state, lessons, this::expire);
    }

    @Override
    public void admit(int record) {
        assertAbsent(record);
        long fingerprint = records.fingerprint(record);
        boolean copied = records.hasCopy(record);
        clock.compare(false, copied, fingerprint);
        continueAt(records.parent(record));
        int known = lessons.returned(fingerprint, state.now());
        long word = fresh(record, known, copied);
        leaves.come(record, Lessons.labelOf(known));
        leaves.set(record, expectations.afterUse(word, fingerprint, horizon()));
        begin(record);
        size++;
        exposed(record);
    }

    /// {@inheritDoc}
    ///
    /// Until its first use what is remembered of it counts, as if it had not come.
    @Override
    public void bring(int record) {
        assertAbsent(record);
        int parent = records.parent(record);
        if (parent != RecordView.NONE && leaves.holds(parent)) {
            leaves.unlist(parent);
        }
        long fingerprint = records.fingerprint(record);
        int known = lessons.known(fingerprint);
        long word = BlockWord.of(leaves.owner(), Lessons.stepOf(known), records.cohort(record), state.now());
        leaves.come(record, Lessons.labelOf(known));
        word = BlockWord.withCopied(word, records.hasCopy(record));
        leaves.set(record, expectations.ahead(word, fingerprint, horizon()));
        size++;
        exposed(record);
    }

    @Override
    public boolean remembers(long fingerprint) {
        return lessons.remembers(fingerprint);
    }

    @Override
    public void touch(int record) {
        if (!leaves.holds(record)) {
            return;
        }
        if (BlockWord.standing(leaves.word(record)) == BlockWord.AHEAD) {
            firstUse(record);
            return;
        }
        clock.compare(true, BlockWord.isCopied(leaves.word(record)), records.fingerprint(record));
        long now = clock.use(size);
        long word = leaves.word(record);
        boolean last = record != before;
        before = records.parent(record);
        lessons.used(leaves.lane(record), word, now);
        leaves.move(
                record, expectations.afterUse(BlockWord.used(word, last, now), records.fingerprint(record), horizon()));
        begin(record);
    }

    @Override
    public boolean touchesAncestors() {
        return true;
    }

    @Override
    public void continued(int record) {
        continueAt(record);
    }

    @Override
    public void exposed(int record) {
        if (leaves.holds(record) && !leaves.isListed(record) && records.residentChildren(record) == 0) {
            leaves.list(record);
        }
    }

    @Override
    public void forget(int record) {
        assertHere(record);
        clock.guard().gone(records.fingerprint(record));
        leaves.unlist(record);
        end(record);
        leaves.set(record, 0);
        size--;
    }

    @Override
    public void evicted(int record) {
        assertHere(record);
        leaves.unlist(record);
        depart(record);
    }

    @Override
    public void demote(int record) {
        assertHere(record);
        if (BlockWord.standing(leaves.word(record)) == BlockWord.AHEAD) {
            lessons.forget(records.fingerprint(record)); // it counts as resident from now on
        }
        change(record, BlockWord.withStanding(leaves.word(record), BlockWord.DEMOTED));
        exposed(record);
    }

    @Override
    public void label(int record, int reuseClass) {
        say(record, Said.of(reuseClass, Said.halvings(leaves.said(record))));
    }

    @Override
    public void weigh(int record, int halvings) {
        say(record, Said.of(Said.reuseClass(leaves.said(record)), halvings));
    }

    /// {@inheritDoc}
    ///
    /// To the model this is the use, so it learns how long it takes until a use is known.
    @Override
    public void expect(int record) {
        if (leaves.holds(record) && BlockWord.standing(leaves.word(record)) != BlockWord.EXPECTED) {
            long now = clock.tick(size);
            long word = leaves.word(record);
            lessons.used(leaves.lane(record), word, now);
            leaves.move(record, BlockWord.withStamp(BlockWord.withStanding(word, BlockWord.EXPECTED), now));
            begin(record);
        }
    }

    @Override
    public void announce(long fingerprint) {
        lessons.announced(fingerprint, state.now());
        expectations.add(fingerprint, state.now(), horizon());
    }

    @Override
    public void copied(int record) {
        long word = leaves.word(record);
        if (leaves.holds(record) && BlockWord.isCopied(word) != records.hasCopy(record)) {
            change(record, BlockWord.withCopied(word, !BlockWord.isCopied(word)));
        }
    }

    @Override
    public void usedElsewhere(int record) {
        long fingerprint = records.fingerprint(record);
        int known = lessons.returned(fingerprint, state.now());
        boolean last = record != before;
        before = records.parent(record);
        long word = BlockWord.of(
                leaves.owner(), Lessons.usesOf(known, state.now()), records.cohort(record), clock.tick(size));
        long left = last ? word : BlockWord.continued(word);
        int lane = lanes.laneOf(Lessons.labelOf(known));
        lessons.begin(lane, left);
        lessons.departs(fingerprint, lane, left, size);
    }

    @Override
    public double worth(int record) {
        boolean byAge = clock.guard().followsLru();
        return leaves.holds(record)
                ? lessons.worth(leaves.lane(record), leaves.word(record), state.now(), byAge)
                : lessons.worthOfDeparted(records.fingerprint(record), state.now(), horizon(), byAge);
    }

    @Override
    public double lowestWorth() {
        int lowest = leaves.lowest();
        return lowest == NONE ? 0 : worth(lowest);
    }

    @Override
    public int evict(IntPredicate claim) {
        int victim = leaves.takeLowest(claim, putOff);
        if (victim != NONE) {
            clock.guard().full(size);
            depart(victim);
        }
        return victim;
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public long coldestUse() {
        int lowest = leaves.lowest();
        return lowest == NONE ? Long.MAX_VALUE : BlockWord.stamp(leaves.word(lowest));
    }

    /// Bytes of this instance's tables, without what is remembered of evicted blocks.
    @Override
    public long heapBytes() {
        return lessons.bytes() + ShadowLru.BYTES + expectations.bytes();
    }

    /// Bytes that the memory of evicted blocks takes.
    public long departedBytes() {
        return lessons.departedBytes();
    }

    @Override
    public Guard.Report guard() {
        return clock.guard().report();
    }

    /// Checks what is remembered of all blocks.
    void validate() {
        lessons.validate(leaves, records.capacity());
    }

    private void assertAbsent(int record) {
        assert BlockWord.owner(leaves.word(record)) == 0 : "record " + record + " is here already";
    }

    private void assertHere(int record) {
        assert leaves.holds(record) : "record " + record + " is not here";
    }

    private void begin(int record) {
        lessons.begin(leaves.lane(record), leaves.word(record));
    }

    private void end(int record) {
        lessons.end(leaves.lane(record), leaves.word(record));
    }

    private void depart(int record) {
        lessons.departs(records.fingerprint(record), leaves.lane(record), leaves.word(record), size);
        leaves.set(record, 0);
        size--;
    }

    /// Gives a record another word without a use.
    private void change(int record, long word) {
        end(record);
        leaves.move(record, word);
        begin(record);
    }

    /// Gives a record another lane.
    private void say(int record, byte said) {
        if (!leaves.holds(record) || leaves.said(record) == said) {
            return;
        }
        if (lessons.open(said)) {
            clock.rank();
        }
        boolean listed = leaves.isListed(record);
        leaves.unlist(record);
        end(record);
        leaves.say(record, said);
        begin(record);
        if (listed) {
            leaves.list(record);
        }
    }

    /// A leaf in use counts as used now, but that is no use to learn from.
    private void putOff(int record) {
        long used = BlockWord.withStamp(leaves.word(record), state.tick());
        boolean demoted = BlockWord.standing(used) == BlockWord.DEMOTED;
        change(record, demoted ? BlockWord.withStanding(used, BlockWord.ORDINARY) : used);
        leaves.list(record);
    }

    /// A request goes on behind a block, which is no leaf any more.
    private void continueAt(int record) {
        if (record == RecordView.NONE || !leaves.holds(record)) {
            return;
        }
        leaves.unlist(record);
        if (BlockWord.isLast(leaves.word(record))) {
            change(record, BlockWord.continued(leaves.word(record)));
        }
    }

    /// A block is used for which its coming was no use: as if it came now.
    private void firstUse(int record) {
        long fingerprint = records.fingerprint(record);
        boolean copied = BlockWord.isCopied(leaves.word(record));
        clock.compare(true, copied, fingerprint);
        long word = fresh(record, lessons.returned(fingerprint, state.now()), copied);
        boolean last = record != before;
        before = records.parent(record);
        word = last ? word : BlockWord.continued(word);
        leaves.move(record, expectations.afterUse(word, fingerprint, horizon()));
        begin(record);
    }

    /// The word of a block that is used and was not here, or was not used since it came.
    ///
    /// @param known as [Lessons#returned] has it
    private long fresh(int record, int known, boolean copied) {
        int uses = Lessons.usesOf(known, state.now());
        long now = clock.enter(uses > 1, size);
        return BlockWord.withCopied(BlockWord.of(leaves.owner(), uses, records.cohort(record), now), copied);
    }

    /// What was announced long ago and has not come was a mistake.
    private void expire(long now) {
        for (int span = 0; span < buckets.spans() && buckets.age(span, now) > horizon(); span++) {
            int list = buckets.at(BlockWord.EXPECTED_CLASS, span);
            while (buckets.oldest(list) != NONE) {
                int record = buckets.oldest(list);
                change(record, BlockWord.withStanding(leaves.word(record), BlockWord.ORDINARY));
            }
        }
    }

    private long horizon() {
        return Expectations.horizon(size);
    }
}
