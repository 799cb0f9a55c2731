package io.kvcache.planner.baseline;

import io.kvcache.core.policy.PolicyState;

/// Notes of each record, and of evicted keys, that all instances of one baseline policy over one store share.
///
/// Arrays appear when a policy first asks for them.
///
/// **Threads.** One writer, the holder of the store's lock.
final class BaselineNotes {

    private final int capacity;
    private final int ghostCapacity;
    private long[] stamps = {};
    private int[] uses = {};
    private int[] newer = {};
    private int[] older = {};
    private byte[] flags = {};
    private GhostCounts ghosts = new GhostCounts(1);
    private boolean hasGhosts;

    private BaselineNotes(PolicyState state) {
        capacity = state.capacity();
        ghostCapacity = state.ghostCapacity();
    }

    /// Those of a store.
    static BaselineNotes of(PolicyState state) {
        return state.shared(BaselineNotes.class, BaselineNotes::new);
    }

    /// Clock reading of each record's last use, or of its admission.
    long[] stamps() {
        stamps = stamps.length == 0 ? new long[capacity] : stamps;
        return stamps;
    }

    /// Uses counted for each record.
    int[] uses() {
        uses = uses.length == 0 ? new int[capacity] : uses;
        return uses;
    }

    /// The next newer record in the list that a record is linked into.
    int[] newer() {
        newer = newer.length == 0 ? new int[capacity] : newer;
        return newer;
    }

    /// The next older record in the list that a record is linked into.
    int[] older() {
        older = older.length == 0 ? new int[capacity] : older;
        return older;
    }

    /// A few bits for each record, meant as the policy says.
    byte[] flags() {
        flags = flags.length == 0 ? new byte[capacity] : flags;
        return flags;
    }

    /// Returns the counts of evicted keys.
    GhostCounts ghosts() {
        if (!hasGhosts) {
            ghosts = new GhostCounts(ghostCapacity);
            hasGhosts = true;
        }
        return ghosts;
    }
}
