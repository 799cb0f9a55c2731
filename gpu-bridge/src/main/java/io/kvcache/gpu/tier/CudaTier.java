package io.kvcache.gpu.tier;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierSource;
import io.kvcache.gpu.cuda.CudaDriver;
import io.kvcache.gpu.driver.DeviceDriver;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Memory of one GPU, to build a store with:
/// `TieredKvCache.builder().tier(CudaTier.open(0, bytes))`, with disks or without.
///
/// The store takes the device when it is built, and again some time after the device failed; in between
/// it serves without. Whoever built it keeps this, to ask where blocks lie on the device.
///
/// **Threads.** Any.
public final class CudaTier implements TierSource {

    private final Part whole;
    private volatile List<Part> parts;

    private CudaTier(Part whole) {
        this.whole = whole;
        parts = List.of(whole);
    }

    /// So many bytes of a GPU, once a store is built with it.
    ///
    /// @param ordinal which, from 0 on, in the driver's order
    /// @param bytes 1 MiB and up; the largest block is a sixteenth of them below 1 GiB, and 64 MiB or
    ///     more above
    public static CudaTier open(int ordinal, long bytes) {
        if (ordinal < 0) {
            throw new IllegalArgumentException("GPU " + ordinal + "; it takes 0 and up");
        }
        return over("GPU " + ordinal, () -> CudaDriver.open(ordinal), bytes);
    }

    /// So many bytes of any device, for tests and for machines without a GPU.
    ///
    /// @param driver opens the device
    public static CudaTier over(String name, Supplier<DeviceDriver> driver, long bytes) {
        return new CudaTier(new Part(name, driver, DeviceGeometry.of(bytes)));
    }

    /// Pins the leading blocks of a chain that are on the device, from one on, and says where they lie;
    /// none while the device is out.
    ///
    /// @param from first block wanted, `0 <= from <= chain.length()`
    public DeviceBlockTable acquire(BlockChain chain, int from) {
        return DeviceIndex.acquire(present().stream().map(DeviceTier::index).toList(), chain, from);
    }

    /// The same, as far as the device finds the bytes of the blocks to be those that were stored;
    /// see [DeviceTier#acquireVerified]. Of a device that is shared out over several disks each
    /// part looks at what it has.
    ///
    /// @return ends with [io.kvcache.gpu.driver.DeviceException] when the device cannot look
    public CompletionStage<DeviceBlockTable> acquireVerified(BlockChain chain, int from) {
        List<DeviceTier> here = present();
        return here.size() == 1
                ? here.getFirst().acquireVerified(chain, from)
                : VerifiedParts.acquire(here, chain, from);
    }

    private List<DeviceTier> present() {
        List<DeviceTier> here = new ArrayList<>();
        for (Part part : parts) {
            DeviceTier tier = part.present;
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
    public long aliveBytes() {
        return whole.aliveBytes();
    }

    @Override
    public long maxBlockBytes() {
        return whole.maxBlockBytes();
    }

    @Override
    public List<TierSource> split(int count) {
        List<Part> split = whole.parts(count);
        parts = split;
        return List.copyOf(split);
    }

    @Override
    public Tier open(TierListener listener, MemorySegment slots) {
        return whole.open(listener, slots);
    }

    /// What is opened by itself: all of it, or one of several parts, each with a thread and a driver of its
    /// own.
    private static final class Part implements TierSource {

        private final String name;
        private final Supplier<DeviceDriver> driver;
        private final DeviceGeometry geometry;
        private volatile @Nullable DeviceTier present;

        Part(String name, Supplier<DeviceDriver> driver, DeviceGeometry geometry) {
            this.name = name;
            this.driver = driver;
            this.geometry = geometry;
        }

        List<Part> parts(int count) {
            if (count < 1) {
                throw new IllegalArgumentException(count + " parts of " + name + "; it takes 1 and up");
            }
            DeviceGeometry each = DeviceGeometry.of(geometry.bytes() / count);
            return IntStream.range(0, count)
                    .mapToObj(part -> new Part(name + " part " + part, driver, each))
                    .toList();
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public long aliveBytes() {
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
