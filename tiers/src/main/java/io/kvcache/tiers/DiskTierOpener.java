package io.kvcache.tiers;

import io.kvcache.core.memory.HostMemorySource;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.tiers.directory.DiskDirectory;
import io.kvcache.tiers.disk.DiskTier;
import io.kvcache.tiers.movement.TierOpener;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.Executor;

/// Opens the disk tier of a directory.
///
/// @param memory what the log works with comes from
/// @param slots the store's host memory, which blocks travel from and to
/// @param checksumExecutor computes checksums beside the disk's thread
record DiskTierOpener(DiskOptions options, HostMemorySource memory, MemorySegment slots, Executor checksumExecutor)
        implements TierOpener {

    /// Registering touches all of the memory, which for gibibytes takes seconds of the start; huge
    /// pages, which larger stores get, spare the kernel most of the same work.
    private static final long MAX_REGISTERED_BYTES = 256L << 20;

    @Override
    public String name() {
        return "disk " + options.directory();
    }

    @Override
    public Tier open(TierListener listener) {
        DiskDirectory directory = DiskDirectory.open(options.directory(), options.bytes(), options.files());
        try {
            if (slots.byteSize() <= MAX_REGISTERED_BYTES) {
                directory.device().register(slots);
            }
            DiskTier.Resources resources =
                    new DiskTier.Resources(directory.device(), directory, memory, checksumExecutor);
            return new DiskTier(name(), resources, directory.config(), listener);
        } catch (RuntimeException failed) {
            directory.close();
            throw failed;
        }
    }

    @Override
    public RuntimeException openFailure(Tier tier) {
        return tier instanceof DiskTier disk
                ? DiskDirectory.openFailure(options.directory(), disk.log())
                : new IllegalStateException(name() + " is " + tier.state() + ": " + tier.cause());
    }
}
