package io.kvcache.gpu.tier;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierSource;
import io.kvcache.gpu.cuda.CudaDriver;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.tier.DeviceRegions.DeviceEntry;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Memory of one GPU, to build a store with:
/// `TieredKvCache.builder().tier(CudaTier.open(0, bytes))`, with disks or without.
///
/// The store takes the device when it is built, and again some time after the device failed; in between
/// it serves without. The caller keeps this, to ask where blocks lie on the device.
///
/// **Threads.** Any.
public final class CudaTier implements TierSource {

    private final Partition whole;
    private volatile List<Partition> partitions;

    private CudaTier(Partition whole) {
        this.whole = whole;
        partitions = List.of(whole);
    }

    /// The given number of bytes of a GPU, allocated when a store is built with it.
    ///
    /// @param ordinal which, from 0 on, in the driver's order
    /// @param bytes 1 MiB and up; the largest block is a sixteenth of them below 1 GiB, and 64 MiB or
    ///     more above
    public static CudaTier open(int ordinal, long bytes) {
        if (ordinal < 0) {
            throw new IllegalArgumentException("GPU " + ordinal + "; it takes 0 and up");
        }
        return withDriver("GPU " + ordinal, () -> CudaDriver.open(ordinal), bytes);
    }

    /// The given number of bytes of any device, for tests and for machines without a GPU.
    ///
    /// @param driver opens the device
    public static CudaTier withDriver(String name, Supplier<DeviceDriver> driver, long bytes) {
        return new CudaTier(new Partition(name, driver, DeviceGeometry.of(bytes)));
    }

    /// Pins the leading blocks of a chain that are on the device, from one on, and says where they lie;
    /// none while the device is out.
    ///
    /// @param from first block wanted, `0 <= from <= chain.length()`
    public DeviceBlockTable acquire(BlockChain chain, int from) {
        return DeviceBlockIndex.acquire(
                openPartitions().stream().map(DeviceTier::index).toList(), chain, from);
    }

    /// Pins all blocks `[from, to)` of a chain that are on the device, also those behind others that are not; none
    /// while the device is out.
    public DeviceBlockMap acquireEach(BlockChain chain, int from, int to) {
        return DeviceBlockIndex.acquireEach(
                openPartitions().stream().map(DeviceTier::index).toList(), chain, from, to);
    }

    /// Returns where an engine may put blocks that it stores, so that the tier need not get them from host memory;
    /// null while the device is out, and where it is shared out over several disks, as the disk of a block is not
    /// known then.
    public @Nullable DeviceStaging staging() {
        List<DeviceTier> here = openPartitions();
        return here.size() == 1 ? here.getFirst().staging() : null;
    }

    /// As [#acquire], as far as the device finds the bytes of the blocks to be those that were stored;
    /// see [DeviceTier#acquireVerified]. Of a device that is shared out over several disks each
    /// part looks at what it has.
    ///
    /// @return ends with [io.kvcache.gpu.driver.DeviceException] when the device cannot look
    public CompletionStage<DeviceBlockTable> acquireVerified(BlockChain chain, int from) {
        List<DeviceTier> here = openPartitions();
        return here.size() == 1 ? here.getFirst().acquireVerified(chain, from) : acquireVerified(here, chain, from);
    }

    /// Asks all parts at once. What one part finds damaged ends the prefix, wherever the blocks behind it lie.
    ///
    /// @return ends as the first part does that cannot look
    static CompletionStage<DeviceBlockTable> acquireVerified(List<DeviceTier> parts, BlockChain chain, int from) {
        DeviceBlockTable all =
                DeviceBlockIndex.acquire(parts.stream().map(DeviceTier::index).toList(), chain, from);
        List<CompletableFuture<DeviceBlockTable>> looks = new ArrayList<>();
        for (DeviceTier part : parts) {
            DeviceBlockTable own = all.entriesOf(part.index());
            List<DeviceEntry> asked = own.entries();
            looks.add(part.verify(own).whenComplete((found, _) -> end(all, asked, found)));
        }
        CompletableFuture<DeviceBlockTable> answer = new CompletableFuture<>();
        var _ = CompletableFuture.allOf(looks.toArray(CompletableFuture[]::new)).whenComplete((_, failed) -> {
            if (failed != null) {
                all.close();
                answer.completeExceptionally(failed.getCause() == null ? failed : failed.getCause());
            } else if (!answer.complete(all)) {
                all.close(); // the caller gave up
            }
        });
        return answer;
    }

    /// A part has looked: what is behind the first that it did not find good is not the answer, whatever
    /// others find, and is held no longer. So a part that closes waits for none of the others.
    ///
    /// @param asked of this part, in the chain's order
    /// @param found as many of these as are good, or null when it could not look
    private static void end(DeviceBlockTable all, List<DeviceEntry> asked, @Nullable DeviceBlockTable found) {
        int good = found == null ? 0 : found.blocks();
        if (good < asked.size()) {
            all.truncateBefore(asked.get(good));
        }
        if (found != null) {
            found.close();
        }
    }

    private List<DeviceTier> openPartitions() {
        List<DeviceTier> here = new ArrayList<>();
        for (Partition partition : partitions) {
            DeviceTier tier = partition.present;
            if (tier != null) {
                here.add(tier);
            }
        }
        return here;
    }

    @Override
    public String name() {
        return whole.name();
    }

    @Override
    public long maxLiveBytes() {
        return whole.maxLiveBytes();
    }

    @Override
    public long maxBlockBytes() {
        return whole.maxBlockBytes();
    }

    @Override
    public List<TierSource> split(int count) {
        List<Partition> split = whole.parts(count);
        partitions = split;
        return List.copyOf(split);
    }

    @Override
    public Tier open(TierListener listener, MemorySegment slots) {
        return whole.open(listener, slots);
    }

    /// The whole tier, or one of several parts. Each has a thread and a driver of its own.
    private static final class Partition implements TierSource {

        private final String name;
        private final Supplier<DeviceDriver> driver;
        private final DeviceGeometry geometry;
        private volatile @Nullable DeviceTier present;

        Partition(String name, Supplier<DeviceDriver> driver, DeviceGeometry geometry) {
            this.name = name;
            this.driver = driver;
            this.geometry = geometry;
        }

        List<Partition> parts(int count) {
            if (count < 1) {
                throw new IllegalArgumentException(count + " parts of " + name + "; it takes 1 and up");
            }
            DeviceGeometry each = DeviceGeometry.of(geometry.bytes() / count);
            return IntStream.range(0, count)
                    .mapToObj(part -> new Partition(name + " part " + part, driver, each))
                    .toList();
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public long maxLiveBytes() {
            return geometry.aliveBytes();
        }

        @Override
        public long maxBlockBytes() {
            return geometry.regionBytes();
        }

        @Override
        public List<TierSource> split(int count) {
            return List.copyOf(parts(count));
        }

        @Override
        public Tier open(TierListener listener, MemorySegment slots) {
            DeviceTier tier = new DeviceTier(name, driver.get(), geometry, slots, listener);
            present = tier;
            return tier;
        }
    }
}
