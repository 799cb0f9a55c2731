package io.kvcache.core.tree;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.policy.NoveltyClass;
import io.kvcache.core.policy.RecordView;
import java.util.Arrays;

/// Records as the eviction policies see them: with the families of the tree, and with objects in
/// the order in which their readers take them.
///
/// An object has no parent in the tree: it is found, replaced, dropped and written to disk by
/// itself. But a caller that stores a sequence as objects reads the first before the second, so one that goes
/// before those behind it makes them worthless. What a caller says of that order is kept here and
/// reported to policies alone. A link that is wrong, or missing, costs hits and nothing else.
///
/// A link is made while the later object has none behind it, so there are no circles. It holds as
/// long as both are resident: the earlier one's generation tells whether it still is the same.
///
/// Costs 14 bytes a record once the first link is made, nothing before.
///
/// **Threads.** Owned by the store's lock.
public final class ObjectLinks implements RecordView {

    private static final int MAX_DEPTH = Short.MAX_VALUE;

    private final RecordPool pool;
    /// A [RecordHandle] of the object before each, or [RecordHandle#MISS].
    private long[] predecessors = {};
    /// Objects that are linked behind each.
    private int[] successorCounts = {};

    private short[] depths = {};

    public ObjectLinks(RecordPool pool) {
        this.pool = pool;
    }

    @Override
    public int capacity() {
        return pool.capacity();
    }

    @Override
    public int parent(int record) {
        int parent = pool.parent(record);
        return parent != NONE || predecessors.length == 0 ? parent : predecessor(record);
    }

    @Override
    public int depth(int record) {
        return predecessors.length == 0 ? pool.depth(record) : pool.depth(record) + depths[record];
    }

    @Override
    public int noveltyClass(int record) {
        int known = RecordFlags.noveltyClass(pool.flags(record));
        return known >= 0 ? known : NoveltyClass.ofSingleBlock(depth(record));
    }

    @Override
    public int residentChildren(int record) {
        int children = pool.residentChildren(record);
        return predecessors.length == 0 ? children : children + successorCounts[record];
    }

    @Override
    public boolean hasCopy(int record) {
        return pool.diskAddress(record) != NONE;
    }

    @Override
    public long bytes(int record) {
        return pool.bytes(record);
    }

    @Override
    public long fingerprint(int record) {
        return pool.fingerprint(record);
    }

    /// The object before this one, or [#NONE].
    public int predecessor(int record) {
        long handle = predecessors.length == 0 ? RecordHandle.MISS : predecessors[record];
        if (handle == RecordHandle.MISS) {
            return NONE;
        }
        int earlier = RecordHandle.record(handle);
        return ControlWord.generation(pool.control(earlier)) == RecordHandle.generation(handle) ? earlier : NONE;
    }

    /// Links an object that has a slot, or is about to get one, behind another of the same namespace that
    /// has one.
    ///
    /// One that is linked already, or has others behind it, stays as it is.
    ///
    /// @param earlier a record or [#NONE]
    /// @return whether it was linked
    public boolean link(int record, int earlier) {
        if (earlier == NONE || !canLink(record, earlier)) {
            return false;
        }
        if (predecessors.length == 0) {
            allocate();
        }
        if (successorCounts[record] > 0 || predecessor(record) != NONE) {
            return false;
        }
        predecessors[record] = RecordHandle.of(ControlWord.generation(pool.control(earlier)), earlier);
        depths[record] = (short) Math.min(MAX_DEPTH, depths[earlier] + 1);
        successorCounts[earlier]++;
        return true;
    }

    private boolean canLink(int record, int earlier) {
        int identity = pool.flags(earlier);
        return earlier != record
                && RecordFlags.isObject(identity)
                && RecordFlags.namespaceId(identity) == RecordFlags.namespaceId(pool.flags(record))
                && pool.hostPage(earlier) != NONE;
    }

    /// Takes an object's link to the one before it away.
    ///
    /// @return the one before it, or [#NONE]
    public int unlink(int record) {
        int earlier = predecessor(record);
        if (earlier != NONE) {
            successorCounts[earlier]--;
        }
        if (predecessors.length > 0) {
            predecessors[record] = RecordHandle.MISS;
            depths[record] = 0;
        }
        return earlier;
    }

    /// An object's slot goes, and its generation has changed or is about to: nothing is behind it any more.
    ///
    /// @return the one before it, or [#NONE]
    public int onSlotReleased(int record) {
        if (predecessors.length == 0) {
            return NONE;
        }
        successorCounts[record] = 0;
        return unlink(record);
    }

    /// Objects linked behind a record.
    public int successorCount(int record) {
        return successorCounts.length == 0 ? 0 : successorCounts[record];
    }

    private void allocate() {
        predecessors = new long[pool.capacity()];
        Arrays.fill(predecessors, RecordHandle.MISS);
        successorCounts = new int[pool.capacity()];
        depths = new short[pool.capacity()];
    }
}
