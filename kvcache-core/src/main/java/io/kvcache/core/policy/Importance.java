package io.kvcache.core.policy;

import java.util.Arrays;
import java.util.function.IntPredicate;

/// Evicts the leaf that is expected to give the fewest uses for the memory it holds, by what has been
/// learned.
///
/// **Mechanism.** Blocks fall into classes by what can be seen of them: used once, twice or more often;
/// whether the request that used it last ended there, as a partial or last block seldom returns; near
/// the start of a prompt or far into it. [ReuseModel] learns for each class how soon a block of some
/// age is used again, from resident and evicted blocks alike ([Lessons]), and what it is worth. Leaves
/// wait in [LeafBuckets] by class and age, so a victim is the head of the list that is worth least:
/// every leaf is considered, none is sampled.
///
/// A parent never goes before its child, as only leaves go; since any use of a child is a use of its
/// parent, the parent is worth no less. Before anything is learned it is about LRU.
///
/// **Slower tiers.** A block that a disk has too is worth what reading it costs, as a share of what
/// computing it does
/// ([PolicyState#copyWorth]), so it goes before one of its age that would be lost.
///
/// **When it is wrong.** [Guard] compares it with LRU all the time, and has it order by last use alone
/// while that is better.
///
/// **What is known to come.** Blocks that a waiting request will use are exempt while anything else can
/// go. When nothing else can, those announced last go first. An announcement that does not come true is
/// forgotten.
///
/// Costs 16 bytes a record, 32 to 64 for each resident block for what is remembered of evicted ones,
/// and four tenths of a MB an instance, with a MiB more once anything is announced. It is told of all blocks of a path,
/// and needs to be: how often a
/// block was used is what speaks most.
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
    private final Lessons lessons;
    private final long[] words;
    private final int mine;
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
        buckets = new LeafBuckets(state, BlockWord.LISTS);
        lessons = new Lessons(rules, buckets, state.now());
        words = state.words();
        mine = state.newOwner();
    }

    @Override
    public void admit(int record) {
        assert BlockWord.owner(words[record]) == 0 : "record " + record + " is admitted twice";
        long fingerprint = records.fingerprint(record);
        boolean copied = records.hasCopy(record);
        compare(false, copied, fingerprint);
        continueAt(records.parent(record));
        int uses = lessons.returned(fingerprint, state.now());
        long now = enter(uses > 1);
        long word = BlockWord.withCopied(BlockWord.of(mine, uses, records.depth(record), now), copied);
        words[record] = afterUse(record, word);
        lessons.begin(words[record]);
        size++;
        if (records.residentChildren(record) == 0) {
            list(record);
        }
    }

    @Override
    public void touch(int record) {
        if (BlockWord.owner(words[record]) != mine) {
            return;
        }
        compare(true, BlockWord.isCopied(words[record]), records.fingerprint(record));
        newcomers.other(size);
        long now = tick();
        long word = words[record];
        boolean last = record != before;
        before = records.parent(record);
        lessons.used(word, now);
        move(record, afterUse(record, BlockWord.used(word, last, now)));
        lessons.begin(words[record]);
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
        long word = words[record];
        if (BlockWord.owner(word) == mine && (word & BlockWord.LISTED) == 0 && records.residentChildren(record) == 0) {
            list(record);
        }
    }

    @Override
    public void forget(int record) {
        assert BlockWord.owner(words[record]) == mine : "record " + record + " is not here";
        guard.gone(records.fingerprint(record));
        unlist(record);
        lessons.end(words[record]);
        words[record] = 0;
        size--;
    }

    @Override
    public void evicted(int record) {
        assert BlockWord.owner(words[record]) == mine : "record " + record + " is not here";
        unlist(record);
        depart(record);
    }

    @Override
    public void demote(int record) {
        assert BlockWord.owner(words[record]) == mine : "record " + record + " is not here";
        move(record, BlockWord.withStanding(words[record], BlockWord.DEMOTED));
        exposed(record);
    }

    /// {@inheritDoc}
    ///
    /// To the model this is the use, so it learns how long it takes until a use is known.
    @Override
    public void expect(int record) {
        if (BlockWord.owner(words[record]) == mine && BlockWord.standing(words[record]) != BlockWord.EXPECTED) {
            long now = tick();
            long word = words[record];
            lessons.used(word, now);
            move(record, BlockWord.withStamp(BlockWord.withStanding(word, BlockWord.EXPECTED), now));
            lessons.begin(words[record]);
        }
    }

    @Override
    public void announce(long fingerprint) {
        expectations.add(fingerprint, state.now(), horizon());
    }

    @Override
    public void copied(int record) {
        long word = words[record];
        if (BlockWord.owner(word) == mine && BlockWord.isCopied(word) != records.hasCopy(record)) {
            lessons.end(word);
            move(record, BlockWord.withCopied(word, !BlockWord.isCopied(word)));
            lessons.begin(words[record]);
        }
    }

    @Override
    public void usedElsewhere(int record) {
        long fingerprint = records.fingerprint(record);
        int uses = lessons.returned(fingerprint, state.now());
        boolean last = record != before;
        before = records.parent(record);
        long word = BlockWord.of(mine, uses, records.depth(record), tick());
        long left = last ? word : BlockWord.continued(word);
        lessons.begin(left);
        lessons.departs(fingerprint, left, size);
    }

    @Override
    public double worth(int record) {
        long word = words[record];
        boolean byAge = guard.followsLru();
        return BlockWord.owner(word) == mine
                ? lessons.worth(word, state.now(), byAge)
                : lessons.worthOfDeparted(records.fingerprint(record), state.now(), byAge);
    }

    @Override
    public double lowestWorth() {
        int lowest = buckets.lowest();
        return lowest == LeafBuckets.NONE ? 0 : worth(buckets.oldest(lowest));
    }

    @Override
    public int evict(IntPredicate claim) {
        int count = 0;
        int victim = NONE;
        while (victim == NONE && count < MOST_REFUSALS) {
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
        int lowest = buckets.lowest();
        return lowest == LeafBuckets.NONE ? Long.MAX_VALUE : BlockWord.stamp(words[buckets.oldest(lowest)]);
    }

    /// Bytes of this instance's tables, without what is remembered of evicted blocks.
    @Override
    public long heapBytes() {
        return buckets.bytes() + ReuseModel.bytes() + ShadowLru.BYTES + expectations.bytes();
    }

    /// Bytes that the memory of evicted blocks takes.
    public long departedBytes() {
        return lessons.departedBytes();
    }

    @Override
    public Guard.Report guard() {
        return guard.report();
    }

    /// The leaf that is worth least, taken off its list, or [#NONE].
    private int takeLowest() {
        int lowest = buckets.lowest();
        while (lowest != LeafBuckets.NONE) {
            int record = buckets.oldest(lowest);
            unlist(record);
            if (records.residentChildren(record) == 0) {
                return record;
            }
            lowest = buckets.lowest();
        }
        return NONE;
    }

    private void depart(int record) {
        lessons.departs(records.fingerprint(record), words[record], size);
        words[record] = 0;
        size--;
    }

    /// A leaf in use counts as used now, but that is no use to learn from.
    private void putOff(int record) {
        long word = words[record];
        lessons.end(word);
        long used = BlockWord.withStamp(word, state.tick());
        boolean demoted = BlockWord.standing(word) == BlockWord.DEMOTED;
        words[record] = demoted ? BlockWord.withStanding(used, BlockWord.ORDINARY) : used;
        lessons.begin(words[record]);
        list(record);
    }

    /// A request goes on behind a block, which is no leaf any more.
    private void continueAt(int record) {
        if (record == RecordView.NONE || BlockWord.owner(words[record]) != mine) {
            return;
        }
        unlist(record);
        long word = words[record];
        if (BlockWord.isLast(word)) {
            words[record] = BlockWord.continued(word);
            lessons.end(word);
            lessons.begin(words[record]);
        }
    }

    private int listOf(long word) {
        return BlockWord.standing(word) == BlockWord.DEMOTED
                ? LeafBuckets.SPENT
                : buckets.bucket(BlockWord.listOf(word), BlockWord.stamp(word));
    }

    private void list(int record) {
        words[record] |= BlockWord.LISTED;
        buckets.add(listOf(words[record]), record);
    }

    private void unlist(int record) {
        if ((words[record] & BlockWord.LISTED) != 0) {
            buckets.remove(listOf(words[record]), record);
            words[record] &= ~BlockWord.LISTED;
        }
    }

    /// Gives a record another word, and the place that goes with it.
    private void move(int record, long word) {
        boolean listed = (words[record] & BlockWord.LISTED) != 0;
        unlist(record);
        words[record] = word & ~BlockWord.LISTED;
        if (listed) {
            list(record);
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
                lessons.end(words[record]);
                move(record, BlockWord.withStanding(words[record], BlockWord.ORDINARY));
                lessons.begin(words[record]);
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
