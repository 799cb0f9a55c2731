package io.kvcache.core.store;

import io.kvcache.core.event.EventLog;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tree.RecordPool;

/// How large a store is and how it evicts.
///
/// @param slotBytes host memory for blocks and objects; at least one slab of 32 MiB, used in whole slabs
/// @param records blocks and objects that can be known at once
/// @param policy how victims are chosen
/// @param eventCapacity events kept for replay, a power of two
public record HostStoreConfig(long slotBytes, int records, PolicyKind policy, int eventCapacity) {

    /// One record for 16 KiB of memory: enough for blocks of that size, at 0.8 % of it.
    private static final long BYTES_PER_RECORD = 16 << 10;

    /// The most that a store takes.
    public static final int MAX_RECORDS = RecordPool.MAX_RECORDS;

    private static final int MIN_DEFAULT_RECORDS = 1 << 16;

    public HostStoreConfig {
        if (slotBytes < SlabPool.SLAB_BYTES) {
            throw new IllegalArgumentException("host memory is " + slotBytes
                    + " bytes; a store takes at least one slab of " + SlabPool.SLAB_BYTES);
        }
        if (records < 1 || records > RecordPool.MAX_RECORDS) {
            throw new IllegalArgumentException(
                    "records is " + records + "; a store takes 1 to " + RecordPool.MAX_RECORDS);
        }
    }

    /// A store of this size with as many records as it is likely to need.
    public static HostStoreConfig of(long slotBytes, PolicyKind policy) {
        return new HostStoreConfig(slotBytes, defaultRecords(slotBytes), policy, EventLog.DEFAULT_CAPACITY);
    }

    /// Records for a store of this size when nobody says how many.
    public static int defaultRecords(long slotBytes) {
        return Math.clamp(slotBytes / BYTES_PER_RECORD, MIN_DEFAULT_RECORDS, RecordPool.MAX_RECORDS);
    }
}
