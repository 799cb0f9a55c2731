package io.kvcache.core.policy;

import java.util.Arrays;
import java.util.function.IntPredicate;

/// Evicts the leaf that is expected to give the fewest uses for the memory it holds, by what has been
/// learned.
///
/// **Mechanism.** Blocks fall into classes by what can be seen of them: how often they were used;
/// whether the request that used it last ended there, as a partial or last block seldom returns;
/// near the start of a prompt or far into it. [ReuseModel] learns for each class how soon a block of some
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
/// a MiB more once anything is announced, and a tenth of one for each lane. It is told of all
/// blocks of a path, and needs to be: how often a block was used is what speaks most.
///
/// Source: our own, on the ideas of LHD (Beckmann et al., NSDI 2018) and the workload-aware policy of
/// "KVCache cache in the wild" (Wang et al., USENIX ATC 2025).
public final class Importance implements EvictionPolicy {

    private static final int MOST_REFUSALS = 1024;

    /// Uses after which an announcement is given up.
    private static final int SHORTEST_HORIZON = 1 << 16;

    private static final int HORIZON_IN_MEMORY = 4;

    private final RecordView records;
    private final PolicyState state;
    private final LeafBuckets buckets;
    private final Lanes lanes = new Lanes();
    private final Lessons lessons;
    private final Leaves leaves;
    private final Guard guard = new Guard();
    private final Newcomers newcomers = new Newcomers();
    private final Expectations expectations = new Expectations();
    private int[] refusals = new int[8];
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
    }

    @Override
    public void admit(int record) {
        assert BlockWord.owner(leaves.word(record)) == 0 : "record " + record + " is admitted twice";
        long fingerprint = records.fingerprint(record);
        boolean copied = records.hasCopy(record);
        compare(false, copied, fingerprint);
        continueAt(records.parent(record));
        int known = lessons.returned(fingerprint, state.now());
        int uses = Lessons.usesOf(known, state.now());
        long now = enter(uses > 1);
        long word = BlockWord.of(leaves.owner(), uses, records.depth(record), now);
        leaves.come(record, Lessons.labelOf(known));
        leaves.set(record, afterUse(record, BlockWord.withCopied(word, copied)));
        begin(record);
        size++;
        if (records.residentChildren(record) == 0) {
            leaves.list(record);
        }
    }

    @Override
    public void touch(int record) {
        if (!leaves.holds(record)) {
            return;
        }
        compare(true, BlockWord.isCopied(leaves.word(record)), records.fingerprint(record));
        newcomers.other(size);
        long now = tick();
        long word = leaves.word(record);
        boolean last = record != before;
        before = records.parent(record);
        lessons.used(leaves.lane(record), word, now);
        leaves.move(record, afterUse(record, BlockWord.used(word, last, now)));
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
        assert leaves.holds(record) : "record " + record + " is not here";
        guard.gone(records.fingerprint(record));
        leaves.unlist(record);
        end(record);
        leaves.set(record, 0);
        size--;
    }

    @Override
    public void evicted(int record) {
        assert leaves.holds(record) : "record " + record + " is not here";
        leaves.unlist(record);
        depart(record);
    }

    @Override
    public void demote(int record) {
        assert leaves.holds(record) : "record " + record + " is not here";
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
            long now = tick();
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
        long word = BlockWord.of(leaves.owner(), Lessons.usesOf(known, state.now()), records.depth(record), tick());
        long left = last ? word : BlockWord.continued(word);
        int lane = lanes.laneOf(Lessons.labelOf(known));
        lessons.begin(lane, left);
        lessons.departs(fingerprint, lane, left, size);
    }

    @Override
    public double worth(int record) {
        boolean byAge = guard.followsLru();
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
        int count = 0;
        int victim = NONE;
        while (victim == NONE && count < MOST_REFUSALS) {
            int record = leaves.takeLowest();
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
            putOff(refusals[i]);
        }
        if (victim != NONE) {
            guard.full(size);
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
        return guard.report();
    }

    /// Checks what is remembered of all blocks.
    void validate() {
        lessons.validate(leaves, records.capacity());
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
            rank(state.now());
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

    /// The word of a block that was used just now. When more requests are known to come, it stands where the next of
    /// them was announced.
    private long afterUse(int record, long word) {
        long next = expectations.fulfil(records.fingerprint(record), BlockWord.stamp(word), horizon());
        return next == Expectations.NONE
                ? word
                : BlockWord.withStamp(BlockWord.withStanding(word, BlockWord.EXPECTED), next);
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
        return Math.max(SHORTEST_HORIZON, (long) HORIZON_IN_MEMORY * size);
    }

    /// Tells the guard of a use.
    ///
    /// @param hit whether the block was here
    /// @param copied whether a slower tier has it too: losing it is no miss, so it is not compared
    private void compare(boolean hit, boolean copied, long fingerprint) {
        if (guard.use(fingerprint, hit, copied)) {
            rank(state.now());
        }
    }

    /// Time passes by a block that comes, unless too many come that were never seen.
    private long enter(boolean seen) {
        if (seen) {
            newcomers.other(size);
        }
        return seen || newcomers.moves(size) ? tick() : state.now();
    }

    private long tick() {
        long now = state.tick();
        if (lessons.isDue()) {
            lessons.turn(now, size);
            rank(now);
            expire(now);
        }
        return now;
    }

    private void rank(long now) {
        if (guard.followsLru()) {
            lessons.rankByAge();
        } else {
            lessons.rankByWorth(now, state.copyWorth());
        }
    }
}
