package io.kvcache.server.config;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.tiers.memory.SharedMemorySource.StagingLimits;

/// Host memory.
///
/// @param hostBytes for values, used in slabs of 32 MiB
/// @param policy how victims are chosen
/// @param prefaultMode when the memory is touched, so that first requests need not
/// @param staging what clients on this host get to write into, beside that, where they map the memory
public record MemoryConfig(
        long hostBytes, EvictionPolicyFactory policy, PrefaultMode prefaultMode, StagingLimits staging) {

    /// Two slabs: one for values, one for what is smaller, as the other half of LMCache's chunks.
    public static final long MIN_HOST_BYTES = 2L * SlabPool.SLAB_BYTES;

    private static final int DEFAULT_FRACTION = 8;

    /// With the usual limits of what clients write into.
    public MemoryConfig(long hostBytes, EvictionPolicyFactory policy, PrefaultMode prefaultMode) {
        this(hostBytes, policy, prefaultMode, StagingLimits.DEFAULTS);
    }

    public MemoryConfig {
        if (hostBytes < MIN_HOST_BYTES) {
            throw new IllegalArgumentException("memory.host_bytes is " + hostBytes + "; it takes " + MIN_HOST_BYTES
                    + " (64 MiB) and up: it is used in slabs of 32 MiB, and values and what is smaller take one each");
        }
    }

    /// An eighth of the machine's memory.
    ///
    /// @param machineBytes of the machine or its container
    public static MemoryConfig defaults(long machineBytes) {
        long share = machineBytes / DEFAULT_FRACTION / SlabPool.SLAB_BYTES * SlabPool.SLAB_BYTES;
        return new MemoryConfig(Math.max(MIN_HOST_BYTES, share), PolicyKind.LRU, PrefaultMode.BACKGROUND);
    }
}
