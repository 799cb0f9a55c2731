package io.kvcache.gpu.tier;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierSource;
import io.kvcache.core.tier.TierState;
import io.kvcache.gpu.cuda.CudaDriver;
import io.kvcache.gpu.driver.DeviceDriver;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Memory of one GPU, to build a store with:
/// `TieredKvCache.builder().tier(CudaTier.open(0, bytes))`, with disks or without.
///
/// The store takes the device when it is built, and again some time after the device failed; in between
/// it serves without. The caller keeps this, to ask where blocks lie on the device.
///
/// **Threads.** Any.
public final class CudaTier implements TierSource {

    private final String name;
    private final Supplier<DeviceDriver> driver;
    private final DeviceGeometry geometry;
    private volatile @Nullable DeviceTier present;

    private CudaTier(String name, Supplier<DeviceDriver> driver, DeviceGeometry geometry) {
        this.name = name;
        this.driver = driver;
        this.geometry = geometry;
    }

    /// The given number of bytes of a GPU, allocated when a store is built with it.
    ///
    /// @param ordinal which, from 0 on, in the driver's order
    /// @param bytes 1 MiB and up; the largest block is a sixteenth of them below 1 GiB, and 64 MiB or
    ///     more above
    public static CudaTier open(int ordinal, long bytes) {
        return open(ordinal, bytes, bytes);
    }

    /// As [#open(int, long)], of memory that may have another size later, see [#resize].
    ///
    /// @param bytes to begin with, also when the device is opened again; six of 256 parts of `maxBytes` and up
    /// @param maxBytes addresses for as many are taken; 32 MiB and up
    public static CudaTier open(int ordinal, long bytes, long maxBytes) {
        if (ordinal < 0) {
            throw new IllegalArgumentException("GPU " + ordinal + "; it takes 0 and up");
        }
        return withDriver("GPU " + ordinal, () -> CudaDriver.open(ordinal), bytes, maxBytes);
    }

    /// The given number of bytes of any device, for tests and for machines without a GPU.
    ///
    /// @param driver opens the device
    public static CudaTier withDriver(String name, Supplier<DeviceDriver> driver, long bytes) {
        return withDriver(name, driver, bytes, bytes);
    }

    /// The same of memory that may have another size later, see [#resize].
    ///
    /// @param maxBytes as of [#open(int, long, long)]
    public static CudaTier withDriver(String name, Supplier<DeviceDriver> driver, long bytes, long maxBytes) {
        return new CudaTier(name, driver, DeviceGeometry.of(bytes, maxBytes));
    }

    /// Takes more memory of the device, or gives memory back to it. Blocks leave as the store decides, and what
    /// engines or sequences hold is waited for.
    ///
    /// @param bytes as many as the tier may have, or a little less
    /// @param timeout for what is held; the tier goes on afterwards
    /// @return the bytes that it has now: more than were asked for when something is held, fewer when the device
    ///     has no more memory, 0 while the device is out
    /// @throws IllegalArgumentException for fewer bytes than it takes, or more
    public long resize(long bytes, Duration timeout) {
        int _ = geometry.regionsFor(bytes); // refuses other sizes, also before the store is built
        DeviceTier here = present;
        if (here == null) {
            return 0;
        }
        try {
            return here.resize(bytes).get(timeout.toNanos(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException held) {
            return bytes();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return bytes();
        } catch (ExecutionException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /// Returns the bytes that it has of the device now; 0 before the store is built.
    public long bytes() {
        DeviceTier here = present;
        return here == null || here.state() == TierState.FAILED
                ? 0
                : here.stats().capacityBytes();
    }

    /// Pins the leading blocks of a chain that are on the device, from one on, and says where they lie;
    /// none while the device is out.
    ///
    /// @param from first block wanted, `0 <= from <= chain.length()`
    public DeviceBlockTable acquire(BlockChain chain, int from) {
        DeviceTier here = present;
        return here == null ? new DeviceBlockTable(from, List.of()) : here.acquire(chain, from);
    }

    /// Pins all blocks `[from, to)` of a chain that are on the device, also those behind others that are not; none
    /// while the device is out.
    public DeviceBlockMap acquireEach(BlockChain chain, int from, int to) {
        DeviceTier here = present;
        return here == null ? DeviceBlockMap.empty() : here.index().acquireEach(chain, from, to);
    }

    /// Returns where an engine may put blocks that it stores, so that the tier need not get them from host memory;
    /// null before the store is built.
    public @Nullable DeviceStaging staging() {
        DeviceTier here = present;
        return here == null ? null : here.staging();
    }

    /// Begins to use a part of the memory for pages of an engine in this process, each of one block.
    ///
    /// @param namespace of one part
    /// @param maxBytes of all pages, or a little less; a page at least, and no more than [#maxPageBytes]
    /// @throws IllegalArgumentException for other sizes, and when other paged caches have the room
    /// @throws IllegalStateException before the store is built
    /// @throws io.kvcache.gpu.driver.DeviceException when the device is out
    public DevicePages openPages(Namespace namespace, long maxBytes) {
        DeviceTier here = present;
        if (here == null) {
            throw new IllegalStateException(name + " is not a tier of a store yet; build the store first");
        }
        int blockBytes = DevicePages.blockBytes(namespace);
        long least = DeviceGeometry.pages(blockBytes);
        if (blockBytes > maxBlockBytes() || maxBytes < least || maxBytes > maxPageBytes()) {
            throw new IllegalArgumentException(
                    "%s bytes of %s for pages of %s; it takes %s to %s, for pages of up to %s"
                            .formatted(maxBytes, name, blockBytes, least, maxPageBytes(), maxBlockBytes()));
        }
        return here.openPages(namespace, maxBytes);
    }

    /// Bytes that the pages of all paged caches together may have, so that other blocks still come and go.
    public long maxPageBytes() {
        return geometry.maxPageRegions() * geometry.regionBytes();
    }

    /// As [#acquire], as far as the device finds the bytes of the blocks to be those that were stored;
    /// see [DeviceTier#acquireVerified].
    ///
    /// @return ends with [io.kvcache.gpu.driver.DeviceException] when the device cannot look
    public CompletionStage<DeviceBlockTable> acquireVerified(BlockChain chain, int from) {
        DeviceTier here = present;
        return here == null
                ? CompletableFuture.completedStage(new DeviceBlockTable(from, List.of()))
                : here.acquireVerified(chain, from);
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
    public Tier open(TierListener listener, MemorySegment slots) {
        DeviceTier tier = new DeviceTier(name, driver.get(), geometry, slots, listener);
        present = tier;
        return tier;
    }
}
