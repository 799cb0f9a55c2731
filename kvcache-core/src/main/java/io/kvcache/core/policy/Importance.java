package io.kvcache.core.policy;

import java.util.Arrays;
import java.util.function.IntPredicate;

/// Evicts the leaf that is expected to give the fewest uses for the memory it holds, by what has been learned.
///
/// **Mechanism.** Blocks fall into classes by what can be seen of them: used once, twice or more often; whether the
/// request
/// that used it last ended there, as a partial or last block seldom returns; near the start of a prompt or far into it.
/// [ReuseModel] learns for each class how soon a block of some age is used again, from resident and evicted blocks
/// ([Departed]) alike, and what it is worth. Leaves wait in [LeafBuckets] by class and age, so a victim is the head of
/// the
/// list that is worth least: every leaf is considered, none is sampled. Ranks are computed anew, and ages move on, once
/// in
/// 256 uses or a thirty-second of the resident blocks.
///
/// A parent never goes before its child, as only leaves go; since any use of a child is a use of its parent, the parent
/// is worth no less. Before anything is learned it is about LRU.
///
/// Costs 16 bytes a record, 8 for each remembered evicted block, and about 80 KiB an instance. It is told of all blocks
/// of a
/// path, and needs to be: how often a block was used is what speaks most.
///
/// Source: our own, on the ideas of LHD (Beckmann et al., NSDI 2018) and the workload-aware policy of "KVCache cache in
/// the wild" (Wang et al., USENIX ATC 2025).
public final class Importance implements EvictionPolicy {

    private static final int MOST_REFUSALS = 1024;
    private static final int SHORTEST_TURN = 64;
    private static final int TURNS_IN_MEMORY = 64;
    private static final int SHORTEST_LESSON = 1024;
    private static final int LESSONS_IN_MEMORY = 8;

    private final RecordView records;
    private final PolicyState state;
    private final ImportanceRules rules;
    private final ReuseModel model;
    private final LeafBuckets buckets;
    private final long[] words;
    private final int mine;
    private Departed departed = new Departed(1);
    private int[] refusals = new int[8];
    private int size;
    /// The block before the one touched last: if it is touched next, it belongs to the same request.
    private int before = NONE;

    private long turnBegan;
    private long nextTurn;
    private long lessonBegan;

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
        this.rules = rules;
        model = new ReuseModel(rules);
        buckets = new LeafBuckets(state, ReuseModel.CLASSES);
        words = state.words();
        mine = state.newOwner();
        turnBegan = state.now();
        lessonBegan = turnBegan;
    }

    @Override
    public void admit(int record) {
        assert BlockWord.owner(words[record]) == 0 : "record " + record + " is admitted twice";
        long now = tick();
        continueAt(records.parent(record));
        long known = departed.take(records.fingerprint(record));
        int uses = 1;
        if (known != Departed.NONE) {
            uses = Math.min(BlockWord.MOST_USES, BlockWord.usesOf(Departed.classOf(known)) + 1);
            learn(Departed.classOf(known), Departed.lastUse(known), now);
        }
        long word = BlockWord.of(mine, uses, records.depth(record), now);
        words[record] = word;
        buckets.track(bucket(word), 1);
        size++;
        if (records.residentChildren(record) == 0) {
            list(record);
        }
    }

    @Override
    public void touch(int record) {
        long word = words[record];
        if (BlockWord.owner(word) != mine) {
            return;
        }
        long now = tick();
        boolean last = record != before;
        before = records.parent(record);
        learn(BlockWord.classOf(word), BlockWord.stamp(word), now);
        move(record, BlockWord.used(word, last, now));
        buckets.track(bucket(words[record]), 1);
    }

    @Override
    public boolean touchesAncestors() {
        return true;
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
        unlist(record);
        buckets.track(bucket(words[record]), -1);
        words[record] = 0;
        size--;
    }

    @Override
    public void demote(int record) {
        assert BlockWord.owner(words[record]) == mine : "record " + record + " is not here";
        move(record, words[record] | BlockWord.DEMOTED);
        exposed(record);
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
        return buckets.bytes() + ReuseModel.bytes();
    }

    /// Bytes that the memory of evicted blocks takes.
    public long departedBytes() {
        return departed.bytes();
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

    /// A leaf in use counts as used now, but that is no use to learn from.
    private void putOff(int record) {
        long word = words[record];
        buckets.track(bucket(word), -1);
        words[record] = BlockWord.withStamp(word, state.tick()) & ~BlockWord.DEMOTED;
        buckets.track(bucket(words[record]), 1);
        list(record);
    }

    private void depart(int record) {
        long word = words[record];
        if (departed.capacity() < rules.ghosts() * size) {
            remember();
        }
        long fingerprint = records.fingerprint(record);
        long lastUse = Departed.rounded(BlockWord.stamp(word));
        forgetDeparted(departed.take(fingerprint));
        forgetDeparted(departed.put(fingerprint, BlockWord.classOf(word), lastUse));
        buckets.track(bucket(word), -1);
        buckets.track(buckets.bucket(BlockWord.classOf(word), lastUse), 1);
        words[record] = 0;
        size--;
    }

    /// The memory of evicted blocks follows the number of resident ones; what it held is not carried over.
    private void remember() {
        departed.forEach(this::forgetDeparted);
        departed = new Departed((long) (rules.ghosts() * size));
    }

    private void forgetDeparted(long entry) {
        if (entry != Departed.NONE) {
            buckets.track(buckets.bucket(Departed.classOf(entry), Departed.lastUse(entry)), -1);
        }
    }

    private void learn(int classId, long lastUse, long now) {
        model.used(classId, now - lastUse);
        buckets.track(buckets.bucket(classId, lastUse), -1);
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
            buckets.track(bucket(word), -1);
            buckets.track(bucket(words[record]), 1);
        }
    }

    private int bucket(long word) {
        return buckets.bucket(BlockWord.classOf(word), BlockWord.stamp(word));
    }

    private int listOf(long word) {
        return (word & BlockWord.DEMOTED) != 0 ? LeafBuckets.SPENT : bucket(word);
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

    private long tick() {
        long now = state.tick();
        if (now >= nextTurn) {
            turn(now);
        }
        return now;
    }

    /// Lets time pass for everything that is remembered, and ranks the lists anew.
    private void turn(long now) {
        for (int span = 0; span < buckets.spans(); span++) {
            long age = buckets.age(span, now);
            for (int classId = 0; classId < ReuseModel.CLASSES; classId++) {
                int tracked = buckets.tracked(buckets.at(classId, span));
                if (tracked > 0) {
                    model.unused(classId, age, (double) tracked * (now - turnBegan));
                }
            }
        }
        buckets.cut(now);
        if (now - lessonBegan >= Math.max(SHORTEST_LESSON, size / LESSONS_IN_MEMORY)) {
            double halfLives = (now - lessonBegan) / (rules.halfLife() * Math.max(SHORTEST_LESSON, size));
            model.refresh(Math.pow(0.5, halfLives), AgeBins.of(buckets.age(0, now)));
            lessonBegan = now;
        }
        rank(now);
        turnBegan = now;
        nextTurn = now + Math.max(SHORTEST_TURN, size / TURNS_IN_MEMORY);
    }

    private void rank(long now) {
        for (int span = 0; span < buckets.spans(); span++) {
            long age = buckets.age(span, now);
            for (int classId = 0; classId < ReuseModel.CLASSES; classId++) {
                buckets.rank(buckets.at(classId, span), model.density(classId, age));
            }
        }
        buckets.ranked();
    }
}
