package io.kvcache.planner.baseline;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import java.util.function.IntPredicate;

/// S3-FIFO, leaves only: a small queue for newcomers, a main queue, and a memory of what the small one gave up.
///
/// A newcomer enters the small queue, or the main one when it was evicted from the small one not long ago. At the
/// end of the small queue, records used more than once move to the main queue and the others go; at the end of the
/// main queue, records with uses left go round again for one use less. The small queue is emptied first while it
/// holds more than a tenth of the resident records.
///
/// A guess enters the small queue, whatever is remembered of it, and enters anew with its first use.
/// One that goes before that leaves the memory as it was.
///
/// Source: Yang, Zhang, Qiu, Yue, Rashmi: "FIFO queues are all you need for cache eviction", SOSP 2023. Deviation:
/// leaf only. A record that is found to have children leaves its queue but counts as a member; when it is a leaf
/// again it returns to the eviction end, where an older record that was passed over would stand. The ghost memory
/// holds as many keys as the state was made for.
public final class S3Fifo implements EvictionPolicy {

    private static final byte MAX_USES = 3;
    private static final byte USES = 3;
    private static final byte MAIN = 4;
    private static final byte LINKED = 8;
    /// The record was prefetched and has not been used yet.
    private static final byte PREFETCHED = 16;

    /// The small queue's share of the resident records is one in this many.
    private static final int SMALL_SHARE = 10;

    /// Claims that one call lets be refused before it gives up.
    private static final int MAX_REFUSALS = 1024;

    private final RecordView records;
    private final PolicyState state;
    private final byte[] flags;
    private final long[] admitted;
    private final IntrusiveList small;
    private final IntrusiveList main;
    private final GhostCounts ghosts;
    private int size;
    private int smallSize;

    /// @param state shared with the store's other instances
    public S3Fifo(RecordView records, PolicyState state) {
        this.records = records;
        this.state = state;
        flags = BaselineNotes.of(state).flags();
        admitted = BaselineNotes.of(state).stamps();
        small = new IntrusiveList(state);
        main = new IntrusiveList(state);
        ghosts = BaselineNotes.of(state).ghosts();
    }

    @Override
    public void admit(int record) {
        boolean returning = ghosts.removeKey(records.fingerprint(record)) != 0;
        enter(record, returning ? MAIN : 0);
    }

    @Override
    public void onPrefetched(int record) {
        enter(record, PREFETCHED);
    }

    @Override
    public void touch(int record) {
        if (isGuess(record)) {
            forget(record);
            admit(record);
        } else if ((flags[record] & USES) < MAX_USES) {
            flags[record]++;
        }
    }

    @Override
    public boolean touchesAncestors() {
        return true;
    }

    @Override
    public void onBecameLeaf(int record) {
        if ((flags[record] & LINKED) == 0) {
            flags[record] |= LINKED;
            queueOf(record).addOldest(record);
        }
    }

    @Override
    public void forget(int record) {
        unlink(record);
        size--;
        smallSize -= isMain(record) ? 0 : 1;
        flags[record] = 0;
    }

    @Override
    public void onEvicted(int record) {
        if (!isMain(record) && !isGuess(record)) {
            ghosts.put(records.fingerprint(record), 1);
        }
        forget(record);
    }

    @Override
    public void demote(int record) {
        unlink(record);
        smallSize += isMain(record) ? 1 : 0;
        flags[record] &= PREFETCHED;
        onBecameLeaf(record);
    }

    @Override
    public int evict(IntPredicate claim) {
        int refusals = 0;
        while (refusals <= Math.min(small.size() + main.size(), MAX_REFUSALS)) {
            IntrusiveList queue = nextQueue();
            int record = queue.oldest();
            if (record == NONE) {
                break;
            } else if (records.residentChildren(record) != 0) {
                unlink(record);
            } else if (isSpared(record)) {
                reinsert(record);
            } else if (claim.test(record)) {
                onEvicted(record);
                return record;
            } else {
                refusals++;
                onClaimRefused(record);
            }
        }
        return NONE;
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public long victimLastUse() {
        int record = nextQueue().oldest();
        while (record != NONE && records.residentChildren(record) != 0) {
            unlink(record);
            record = nextQueue().oldest();
        }
        return record == NONE ? Long.MAX_VALUE : admitted[record];
    }

    private void enter(int record, int standing) {
        admitted[record] = state.tick();
        flags[record] = (byte) standing;
        relink(record);
        size++;
        smallSize += isMain(record) ? 0 : 1;
    }

    /// Requeues a record that could not be claimed. A pinned record counts as used. A prefetched one does not: its
    /// reader reports the use.
    private void onClaimRefused(int record) {
        unlink(record);
        relink(record);
        if (!isGuess(record)) {
            touch(record);
        }
    }

    private IntrusiveList nextQueue() {
        boolean smallIsLarge = (long) smallSize * SMALL_SHARE >= size;
        return small.size() > 0 && (smallIsLarge || main.size() == 0) ? small : main.size() > 0 ? main : small;
    }

    /// Returns whether the record at the eviction end is spared this time.
    private boolean isSpared(int record) {
        int uses = flags[record] & USES;
        return isMain(record) ? uses > 0 : uses > 1;
    }

    /// To the newest end of the main queue: with one use less, or with none when it comes from the small queue.
    private void reinsert(int record) {
        unlink(record);
        if (isMain(record)) {
            flags[record]--;
        } else {
            flags[record] = MAIN;
            smallSize--;
        }
        relink(record);
    }

    private void relink(int record) {
        flags[record] |= LINKED;
        queueOf(record).addNewest(record);
    }

    private void unlink(int record) {
        if ((flags[record] & LINKED) != 0) {
            flags[record] &= ~LINKED;
            queueOf(record).remove(record);
        }
    }

    private boolean isMain(int record) {
        return (flags[record] & MAIN) != 0;
    }

    private boolean isGuess(int record) {
        return (flags[record] & PREFETCHED) != 0;
    }

    private IntrusiveList queueOf(int record) {
        return isMain(record) ? main : small;
    }

    /// Makes instances of this policy.
    public static final class Factory implements EvictionPolicyFactory {

        @Override
        public String commandName() {
            return "s3-fifo";
        }

        @Override
        public String title() {
            return "S3-FIFO";
        }

        @Override
        public String source() {
            return "Yang et al., SOSP 2023";
        }

        @Override
        public int queueCount() {
            return 0;
        }

        @Override
        public EvictionPolicy create(RecordView records, PolicyState state) {
            return new S3Fifo(records, state);
        }
    }
}
