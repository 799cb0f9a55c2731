package io.kvcache.core.policy;

import java.util.Arrays;
import java.util.function.IntConsumer;
import java.util.function.IntPredicate;

/// The words of one [ImportancePolicy]'s resident blocks, and the list that each of its leaves stands in.
///
/// **Threads.** One writer, the holder of the store's lock.
final class CandidateIndex {

    static final int NONE = RecordView.NONE;

    /// Leaves that are asked for before an eviction is given up.
    private static final int MAX_REFUSALS = 1024;

    private final RecordView records;
    private final PolicyState state;
    private final AgeBucketLists buckets;
    private final LabelClasses labelClasses;
    private final long[] words;
    private final int ownerId;
    private int[] refusals = new int[8];

    CandidateIndex(RecordView records, PolicyState state, AgeBucketLists buckets, LabelClasses labelClasses) {
        this.records = records;
        this.state = state;
        this.buckets = buckets;
        this.labelClasses = labelClasses;
        words = state.words();
        ownerId = state.newOwner();
    }

    /// The number that marks this instance's records.
    int owner() {
        return ownerId;
    }

    boolean contains(int record) {
        return ImportanceWord.owner(words[record]) == ownerId;
    }

    long stateOf(int record) {
        return words[record];
    }

    /// Gives a record that stands in no list another word, 0 when it leaves.
    void setState(int record, long word) {
        words[record] = word;
    }

    /// The lane of what was said of a record.
    int labelClassOf(int record) {
        byte[] said = state.labels();
        return said == null ? LabelClasses.NONE : labelClasses.classOf(said[record]);
    }

    /// A record comes of which nothing was said but its label.
    void add(int record, int label) {
        byte[] said = state.labels();
        if (said != null) {
            said[record] = labelClasses.blockLabelOf(label);
        }
    }

    /// What was said of a record.
    byte labelOf(int record) {
        byte[] said = state.labels();
        return said == null ? BlockLabel.NONE : said[record];
    }

    /// Says something else of a record that is in no list and that no count includes at this moment.
    void setLabel(int record, byte blockLabel) {
        state.labelsForWrite()[record] = blockLabel;
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

    /// Gives a record another word, and the place that goes with it.
    void updateState(int record, long word) {
        boolean listed = isListed(record);
        removeFromList(record);
        words[record] = word & ~ImportanceWord.LISTED;
        if (listed) {
            addToList(record);
        }
    }

    /// The leaf that is worth least, or [#NONE]; it may have children by now.
    int lowestRecord() {
        int lowest = buckets.lowestList();
        return lowest == AgeBucketLists.NONE ? NONE : buckets.oldest(lowest);
    }

    /// The leaf that is worth least, taken off its list, or [#NONE].
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

    /// The leaf that is worth least of those that can be claimed, taken off its list, or [#NONE]
    /// when none of the lowest can.
    ///
    /// @param refused hears of those that could not, which are in no list then
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
