package io.kvcache.core.policy;

import io.kvcache.core.policy.LabelClasses.BlockLabel;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.Lock;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// State shared by the policies of one store: a clock, the per-record arrays of the store's own policies, and any
/// other state that instances of a policy have in common ([#shared]).
///
/// A store runs one policy instance a slot class, and a record belongs to exactly one class at a time, so all
/// instances write into the same arrays and none pays for records that are not its own. Arrays appear when
/// the first policy asks for them: LRU costs 8 bytes a record here, and its heaps at most 9 more each.
///
/// All instances over one state must be of one policy, those of [DiskLru] beside them.
///
/// **Threads.** One writer, the holder of the store's lock.
public final class PolicyState {

    /// Owners are eight bits of a record's word, and 0 means none.
    private static final int MAX_OWNERS = 255;

    /// Evicted keys that can be remembered.
    private static final int MAX_GHOSTS = 1 << 28;

    private final int capacity;
    private final int ghostCapacity;
    private long @Nullable [] words;
    private int @Nullable [] newer;
    private int @Nullable [] older;
    private byte @Nullable [] labels;
    private volatile boolean hasLabels;
    private final Map<Class<?>, Object> shared = new HashMap<>();
    /// Until it is set: reading a block of Llama 3 8B from one NVMe drive of 13 GB/s takes
    /// three tenths of the time that an H100 takes to compute it.
    private volatile double reloadCostRatio = 0.3;

    private long clock;
    private int owners;

    /// Remembers the keys of twice as many evicted blocks as there are records, if the policy remembers any.
    ///
    /// @param capacity number of records, the same as [RecordView#capacity()]
    public PolicyState(int capacity) {
        this(capacity, (int) Math.min(2L * capacity, MAX_GHOSTS));
    }

    /// @param capacity number of records, the same as [RecordView#capacity()]
    /// @param ghostCapacity evicted keys that all instances together remember, for policies that do: 1 to
    ///     2^28
    public PolicyState(int capacity, int ghostCapacity) {
        if (capacity < 1) {
            throw new IllegalArgumentException("capacity is " + capacity + ", must be at least 1");
        }
        this.capacity = capacity;
        this.ghostCapacity = ghostCapacity;
    }

    /// Number of records.
    public int capacity() {
        return capacity;
    }

    /// Bytes of the arrays allocated so far, without ghosts and without the instances' heaps.
    public long arrayBytes() {
        int bytesPerRecord = (words == null ? 0 : Long.BYTES)
                + (newer == null ? 0 : Integer.BYTES)
                + (older == null ? 0 : Integer.BYTES)
                + (labels == null ? 0 : Byte.BYTES);
        return (long) capacity * bytesPerRecord;
    }

    /// Evicted keys that all instances together may remember, for policies that do.
    public int ghostCapacity() {
        return ghostCapacity;
    }

    /// The clock: the reading that the latest use got.
    public long now() {
        return clock;
    }

    /// Returns the cost of losing a block that a slower tier also has, as a share of the cost of losing one that
    /// must be computed again.
    public double reloadCostRatio() {
        return reloadCostRatio;
    }

    /// Sets that share. Any thread may; it counts from the next ranking on.
    ///
    /// @param share above 0 to 1
    public void reloadCostRatio(double share) {
        if (!(share > 0 && share <= 1)) {
            throw new IllegalArgumentException("reloadCostRatio is " + share + ", must be above 0 to 1");
        }
        reloadCostRatio = share;
    }

    /// Next reading of the clock that orders uses in all instances; the first is 1.
    public long tick() {
        return ++clock;
    }

    /// Keeps the readings up to this one for uses that lie before the opening of the store.
    void startClockAfter(long reading) {
        clock = Math.max(clock, reading);
    }

    /// Queues that can still be numbered.
    public int remainingQueues() {
        return MAX_OWNERS - owners;
    }

    /// A number from 1 to 255 that marks the records of one queue.
    int newOwner() {
        if (owners == MAX_OWNERS) {
            throw new IllegalStateException("more than " + MAX_OWNERS + " queues share one policy state");
        }
        return ++owners;
    }

    /// Score, owner and queued bit of each record, as [LeafHeap] packs them.
    long[] words() {
        long[] present = words;
        if (present == null) {
            present = new long[capacity];
            words = present;
        }
        return present;
    }

    /// The next newer record in the list that a record is linked into.
    int[] newer() {
        int[] present = newer;
        if (present == null) {
            present = new int[capacity];
            newer = present;
        }
        return present;
    }

    /// The next older record in the list that a record is linked into.
    int[] older() {
        int[] present = older;
        if (present == null) {
            present = new int[capacity];
            older = present;
        }
        return present;
    }

    /// Sees that callers can say something of records without an array being made under the store's
    /// lock.
    ///
    /// @param lock the store's
    public void allocateLabels(Lock lock) {
        if (hasLabels) {
            return;
        }
        byte[] room = new byte[capacity];
        lock.lock();
        try {
            labels = labels == null ? room : labels;
            hasLabels = true;
        } finally {
            lock.unlock();
        }
    }

    /// How much of what a record holds matters, as callers said while it was in host memory last.
    ///
    /// @return 1 for all of it, also where nothing was said, to an eighth
    public double weight(int record) {
        byte[] present = labels;
        return present == null ? 1 : 1.0 / (1 << BlockLabel.halvings(present[record]));
    }

    /// Clears the label of a record, because the record holds another block now.
    public void clearLabel(int record) {
        byte[] present = labels;
        if (present != null) {
            present[record] = BlockLabel.NONE;
        }
    }

    /// The same, made at the first call.
    byte[] labelsForWrite() {
        byte[] present = labels;
        if (present == null) {
            present = new byte[capacity];
            labels = present;
            hasLabels = true;
        }
        return present;
    }

    /// Returns state that all instances over this state share, made at the first call: for example, a memory of
    /// evicted keys.
    ///
    /// @param type one object is kept for each
    public <T> T shared(Class<T> type, Function<PolicyState, T> maker) {
        return type.cast(shared.computeIfAbsent(type, _ -> maker.apply(this)));
    }
}
