package io.kvcache.core.policy;

import java.util.Arrays;
import java.util.function.IntConsumer;
import java.util.function.IntPredicate;

/// The words of one [Importance]'s resident blocks, and the list that each of its leaves stands in.
///
/// **Threads.** One writer, the holder of the store's lock.
final class Leaves {

    static final int NONE = RecordView.NONE;

    /// Leaves that are asked for before an eviction is given up.
    private static final int MOST_REFUSALS = 1024;

    private final RecordView records;
    private final PolicyState state;
    private final LeafBuckets buckets;
    private final Lanes lanes;
    private final long[] words;
    private final int mine;
    private int[] refusals = new int[8];

    Leaves(RecordView records, PolicyState state, LeafBuckets buckets, Lanes lanes) {
        this.records = records;
        this.state = state;
        this.buckets = buckets;
        this.lanes = lanes;
        words = state.words();
        mine = state.newOwner();
    }

    /// The number that marks this instance's records.
    int owner() {
        return mine;
    }

    boolean holds(int record) {
        return BlockWord.owner(words[record]) == mine;
    }

    long word(int record) {
        return words[record];
    }

    /// Gives a record that stands in no list another word, 0 when it leaves.
    void set(int record, long word) {
        words[record] = word;
    }

    /// The lane of what was said of a record.
    int lane(int record) {
        byte[] said = state.said();
        return said == null ? Lanes.NONE : lanes.of(said[record]);
    }

    /// A record comes of which nothing was said but its label.
    void come(int record, int label) {
        byte[] said = state.said();
        if (said != null) {
            said[record] = lanes.saidOf(label);
        }
    }

    /// What was said of a record.
    byte said(int record) {
        byte[] said = state.said();
        return said == null ? Said.NOTHING : said[record];
    }

    /// Says something else of a record that is in no list and that nobody counts at this moment.
    void say(int record, byte told) {
        state.makeSaid()[record] = told;
    }

    boolean isListed(int record) {
        return (words[record] & BlockWord.LISTED) != 0;
    }

    void list(int record) {
        words[record] |= BlockWord.LISTED;
        buckets.add(listOf(record), record);
    }

    void unlist(int record) {
        if (isListed(record)) {
            buckets.remove(listOf(record), record);
            words[record] &= ~BlockWord.LISTED;
        }
    }

    /// Gives a record another word, and the place that goes with it.
    void move(int record, long word) {
        boolean listed = isListed(record);
        unlist(record);
        words[record] = word & ~BlockWord.LISTED;
        if (listed) {
            list(record);
        }
    }

    /// The leaf that is worth least, or [#NONE]; it may have children by now.
    int lowest() {
        int lowest = buckets.lowest();
        return lowest == LeafBuckets.NONE ? NONE : buckets.oldest(lowest);
    }

    /// The leaf that is worth least, taken off its list, or [#NONE].
    int takeLowest() {
        int lowest = lowest();
        while (lowest != NONE) {
            unlist(lowest);
            if (records.residentChildren(lowest) == 0) {
                return lowest;
            }
            lowest = lowest();
        }
        return NONE;
    }

    /// The leaf that is worth least of those that can be claimed, taken off its list, or [#NONE]
    /// when none of the lowest can.
    ///
    /// @param refused hears of those that could not, which are in no list then
    int takeLowest(IntPredicate claim, IntConsumer refused) {
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
            refused.accept(refusals[i]);
        }
        return victim;
    }

    private int listOf(int record) {
        long word = words[record];
        return BlockWord.standing(word) == BlockWord.DEMOTED
                ? LeafBuckets.SPENT
                : buckets.bucket(BlockWord.listOf(lane(record), word), BlockWord.stamp(word));
    }
}
