package io.kvcache.core.policy;

import java.util.function.IntPredicate;

/// Least recently used among the records that are on one disk and nowhere else.
///
/// A record comes here when its host slot goes. Victims leave host memory in the order of their last use
/// (under LRU exactly, under the others nearly), so the order of admission continues it, and both tiers
/// together are one LRU. Only leaves go: records without any child, wherever that is. A parent inherits the
/// last use of a child that leaves, if it is here too.
///
/// Keeps its notes in the words that the host tier's policies use: a record has an owner in one of the
/// tiers only.
public final class DiskLru {

    /// No victim.
    public static final int NONE = EvictionPolicy.NONE;

    /// Room below the first reading of the clock for what is found at opening, newest first.
    private static final long RECOVERY_CLOCK_START = 1L << 32;

    private final RecordView records;
    private final PolicyState state;
    private final LeafHeap queue;
    private long earlier = RECOVERY_CLOCK_START;

    /// @param records whose [RecordView#residentChildren] tells children of any kind
    /// @param state shared with the host tier's policies
    public DiskLru(RecordView records, PolicyState state) {
        this.records = records;
        this.state = state;
        state.startClockAfter(RECOVERY_CLOCK_START);
        queue = new LeafHeap(records, state);
    }

    /// The record has lost its slot and is on disk alone.
    public void admit(int record) {
        queue.admit(record, state.tick());
    }

    /// The record was found at opening; it counts as used before all that were admitted, and before all that
    /// were found earlier.
    public void addRecovered(int record) {
        earlier = Math.max(1, earlier - 1);
        queue.admit(record, earlier);
    }

    /// The record was used where it lies.
    public void touch(int record) {
        if (queue.contains(record)) {
            queue.raiseScore(record, state.tick());
        }
    }

    /// The record is to go before all others once it has no child, unless it is used before.
    public void demote(int record) {
        if (queue.contains(record)) {
            queue.demote(record);
        }
    }

    /// The record lost its last child.
    public void onBecameLeaf(int record) {
        queue.onBecameLeaf(record);
    }

    /// The record is here no longer.
    public void forget(int record) {
        passUseToParent(record);
        queue.forget(record);
    }

    /// Takes a record out that goes to another order over the same state; answers when it was last used, 0 when it
    /// was not here.
    public long remove(int record) {
        if (!queue.contains(record)) {
            return 0;
        }
        long lastUse = Math.max(1, queue.score(record)); // 0 of one that is demoted
        queue.forget(record);
        return lastUse;
    }

    /// Takes a record in that another order had.
    ///
    /// @param lastUse as [#remove] answered it
    public void insert(int record, long lastUse) {
        if (lastUse > 0) {
            earlier = lastUse == 1 ? earlier : Math.min(earlier, lastUse); // what is found from now on is older
            queue.admit(record, lastUse);
        }
    }

    /// Chooses the next to go, claims it and forgets it.
    ///
    /// @return the record, or [#NONE]
    public int evict(IntPredicate claim) {
        int victim = queue.evict(claim, this::touch);
        if (victim != NONE) {
            forget(victim);
        }
        return victim;
    }

    /// When a record that is here was last used, by the shared clock.
    public long lastUse(int record) {
        return queue.score(record);
    }

    /// Returns whether the record is on this disk alone.
    public boolean contains(int record) {
        return queue.contains(record);
    }

    /// Records that are on this disk alone.
    public int size() {
        return queue.size();
    }

    private void passUseToParent(int record) {
        int parent = records.parent(record);
        if (parent != RecordView.NONE && queue.contains(parent)) {
            queue.raiseScore(parent, queue.score(record));
        }
    }
}
