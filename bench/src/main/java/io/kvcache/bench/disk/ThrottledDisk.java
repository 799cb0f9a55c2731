package io.kvcache.bench.disk;

import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierSource;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLog;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.memory.MemoryOptions;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.Executor;

/// A log over memory at the speed of a disk.
///
/// @param coders as [DiskLog.Resources] takes them
/// @param coded whether blocks are coded
record ThrottledDisk(MemorySegment storage, Executor coders, boolean coded, long bytesPerSecond) implements TierSource {

    private DiskGeometry geometry() {
        return new DiskGeometry(storage.byteSize(), 16L << 20);
    }

    @Override
    public String name() {
        return coded ? "coded" : "plain";
    }

    @Override
    public long maxLiveBytes() {
        return ReclaimConfig.defaults().liveBytes(geometry(), ReclaimConfig.DEFAULT_RESERVE_PERCENT);
    }

    @Override
    public long maxBlockBytes() {
        return geometry().maxEntryBytes();
    }

    @Override
    public List<TierSource> split(int parts) {
        return List.of(this);
    }

    @Override
    public Tier open(TierListener listener, MemorySegment slots) {
        ThrottledDevice device = new ThrottledDevice(MemoryDevice.create(storage, 64), bytesPerSecond);
        DiskLogConfig config = DiskLogConfig.of(geometry(), 1);
        return new DiskLog(
                name(),
                new DiskLog.Resources(device, device, new MappedMemorySource(MemoryOptions.defaults()), coders),
                config.withStaging(coded),
                listener);
    }
}
