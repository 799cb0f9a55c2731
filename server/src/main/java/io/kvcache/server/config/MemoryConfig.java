package io.kvcache.server.config;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.tiers.options.StagingLimits;
import io.kvcache.tiers.os.ByteSizeFormat;

/// Host memory.
///
/// @param hostBytes for values, used in whole slabs
/// @param policy how victims are chosen
/// @param prefaultMode when the memory is touched, so that first requests need not
/// @param staging what clients on this host get to write into, beside that, where they map the memory
public record MemoryConfig(
        long hostBytes, EvictionPolicyFactory policy, PrefaultMode prefaultMode, StagingLimits staging) {

    private static final int DEFAULT_FRACTION = 8;

    /// The part of the machine's memory that values may take; the rest is for the JVM and the system.
    private static final int MAX_MACHINE_PERCENT = 90;

    /// Creates a configuration with the default limits on clients' staging memory.
    public MemoryConfig(long hostBytes, EvictionPolicyFactory policy, PrefaultMode prefaultMode) {
        this(hostBytes, policy, prefaultMode, StagingLimits.DEFAULTS);
    }

    public MemoryConfig {
        if (hostBytes < SlabPool.MIN_BYTES) {
            throw new IllegalArgumentException(
                    "memory.host_bytes is " + hostBytes + "; it takes " + SlabPool.MIN_BYTES + " (32 MiB) and up");
        }
    }

    /// An eighth of the machine's memory.
    ///
    /// @param machineBytes of the machine or its container
    public static MemoryConfig defaults(long machineBytes) {
        long share = Math.max(SlabPool.MIN_BYTES, machineBytes / DEFAULT_FRACTION);
        return new MemoryConfig(SlabPool.wholeSlabs(share), PolicyKind.IMPORTANCE, PrefaultMode.BACKGROUND);
    }

    /// Reads `memory`.
    ///
    /// @param machineBytes memory of the machine or its container
    /// @param domainBytes memory of trust domains, beside `memory.host_bytes`
    static MemoryConfig read(Settings from, MemoryConfig usual, long machineBytes, long domainBytes) {
        return from.getValid(usual, () -> {
            MemoryConfig memory = new MemoryConfig(
                    from.bytes("memory.host_bytes", usual.hostBytes),
                    from.get("memory.policy", usual.policy, SettingParsers::parsePolicy),
                    from.constant("memory.prefault", usual.prefaultMode),
                    readStaging(from, usual.staging));
            long most = machineBytes / 100 * MAX_MACHINE_PERCENT - domainBytes;
            if (memory.hostBytes > most) {
                long jvmBytes = MemoryBudget.of(0, 0).totalBytes();
                throw new IllegalArgumentException("memory.host_bytes is " + ByteSizeFormat.format(memory.hostBytes)
                        + "; with heap and network buffers (" + ByteSizeFormat.format(jvmBytes) + " here) and records"
                        + " together it takes up to " + ByteSizeFormat.format(Math.max(0, most)) + ", "
                        + MAX_MACHINE_PERCENT + " % of the memory there is"
                        + (domainBytes == 0
                                ? ""
                                : " without the " + ByteSizeFormat.format(domainBytes) + " of the domains"));
            }
            return memory;
        });
    }

    private static StagingLimits readStaging(Settings from, StagingLimits usual) {
        long total = from.bytes("memory.staging", usual.totalBytes());
        long client = from.bytes("memory.client_staging", Math.min(usual.clientBytes(), total));
        return from.getValid(usual, () -> {
            try {
                return new StagingLimits(client, total);
            } catch (IllegalArgumentException wrong) {
                throw new IllegalArgumentException(
                        "memory.client_staging is " + client + " and memory.staging " + total + ": "
                                + wrong.getMessage(),
                        wrong);
            }
        });
    }

    /// When the pages of host memory are touched for the first time, which can cost a second a GiB.
    public enum PrefaultMode {
        /// By a thread, while the server serves.
        BACKGROUND,
        /// Before the server listens.
        BEFORE_READY,
        /// By the request that needs them first.
        OFF
    }
}
