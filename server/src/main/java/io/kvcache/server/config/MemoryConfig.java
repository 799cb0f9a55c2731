package io.kvcache.server.config;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.tiers.memory.StagingLimits;

/// Host memory.
///
/// @param hostBytes for values, used in slabs of 32 MiB
/// @param policy how victims are chosen
/// @param prefault when the memory is touched, so that first requests need not
/// @param staging what clients on this host get to write into, beside that, where they map the memory
public record MemoryConfig(long hostBytes, PolicyKind policy, Prefault prefault, StagingLimits staging) {

    private static final int DEFAULT_SHARE = 8;

    /// With the usual limits of what clients write into.
    public MemoryConfig(long hostBytes, PolicyKind policy, Prefault prefault) {
        this(hostBytes, policy, prefault, StagingLimits.DEFAULTS);
    }

    public MemoryConfig {
        if (hostBytes < SlabPool.SLAB_BYTES) {
            throw new IllegalArgumentException(
                    "memory.host_bytes is " + hostBytes + "; it takes " + SlabPool.SLAB_BYTES + " (32 MiB) and up");
        }
    }

    /// An eighth of the machine's memory.
    ///
    /// @param machineBytes of the machine or its container
    public static MemoryConfig defaults(long machineBytes) {
        long share = machineBytes / DEFAULT_SHARE / SlabPool.SLAB_BYTES * SlabPool.SLAB_BYTES;
        return new MemoryConfig(Math.max(SlabPool.SLAB_BYTES, share), PolicyKind.LRU, Prefault.BACKGROUND);
    }
}
