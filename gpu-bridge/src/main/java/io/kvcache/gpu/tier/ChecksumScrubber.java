package io.kvcache.gpu.tier;

import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.ResourceScope;
import io.kvcache.gpu.kernel.GpuKernels;
import io.kvcache.gpu.tier.DeviceRegions.DeviceEntry;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Verifies blocks where they lie: the device computes the store's checksum of each, and blocks that differ leave the
/// index. Takes what it needs of the device when it is first asked.
///
/// Owned by the tier's thread, but for what says otherwise.
final class ChecksumScrubber {

    /// Blocks in one go.
    private static final int MAX_BLOCKS = 64;

    /// Takes few of the processors that the engine needs, as a scrub may take its time.
    private static final int THREAD_GROUPS = 32;

    private final DeviceDriver driver;
    private final DeviceBlockIndex index;
    private final long maxBlockBytes;
    private final Queue<ScrubRequest> requests = new ConcurrentLinkedQueue<>();
    private volatile boolean stopped;
    private @Nullable ScrubResources resources;
    private @Nullable ScrubRequest current;
    private @Nullable DeviceBlockTable table;
    private int good;
    private volatile long damagedBlocks;

    /// @param blocks pins what is to be looked at, once
    private record ScrubRequest(Supplier<DeviceBlockTable> blocks, CompletableFuture<DeviceBlockTable> result) {}

    /// Resources of the device.
    ///
    /// @param sums of one block each, `sumBytes` apart
    /// @param read where they come to
    /// @param arena of that
    /// @param holdings all that is of the device
    private record ScrubResources(
            GpuKernels kernels,
            DeviceStream stream,
            DeviceEvent event,
            DeviceSpan scratch,
            DeviceSpan sums,
            long sumBytes,
            MemorySegment read,
            Arena arena,
            ResourceScope holdings) {}

    ChecksumScrubber(DeviceDriver driver, DeviceBlockIndex index, long mostBlockBytes) {
        this.driver = driver;
        this.index = index;
        this.maxBlockBytes = mostBlockBytes;
    }

    /// Asks for those of a table, up to the first that is not as it should be. Any thread.
    ///
    /// @param blocks pins them, called once by the tier's thread; with an index that is ended it
    ///     has none
    CompletableFuture<DeviceBlockTable> submit(Supplier<DeviceBlockTable> blocks) {
        CompletableFuture<DeviceBlockTable> answer = new CompletableFuture<>();
        requests.add(new ScrubRequest(blocks, answer));
        if (stopped) {
            failPending();
        }
        return answer;
    }

    boolean isBusy() {
        return current != null || !requests.isEmpty();
    }

    long damagedBlocks() {
        return damagedBlocks;
    }

    /// A turn.
    ///
    /// @return how much was done
    int tick() {
        if (current != null) {
            return compareSums();
        }
        ScrubRequest next = requests.poll();
        if (next == null) {
            return 0;
        }
        current = next;
        DeviceBlockTable blocks = next.blocks.get();
        table = blocks;
        good = 0;
        tryBegin(blocks, next);
        return 1;
    }

    /// Passes a failure of the device to the caller, such as that it runs no code. The tier goes on.
    private void tryBegin(DeviceBlockTable blocks, ScrubRequest by) {
        try {
            begin(blocks);
        } catch (DeviceException refused) {
            if (refused.error().isFatal()) {
                throw refused;
            }
            current = null;
            table = null;
            blocks.close();
            by.result.completeExceptionally(refused);
        }
    }

    private ScrubResources resources() {
        ScrubResources present = resources;
        if (present == null) {
            present = openResources();
            resources = present;
        }
        return present;
    }

    private ScrubResources openResources() {
        ResourceScope taken = new ResourceScope();
        Arena arena = Arena.ofShared();
        try {
            GpuKernels kernels = taken.register(GpuKernels.load(driver, THREAD_GROUPS), GpuKernels::close);
            long sumBytes = GpuKernels.crcSumBytes(maxBlockBytes);
            long scratchBytes = GpuKernels.crcScratchBytes(maxBlockBytes);
            DeviceSpan scratch = taken.register(driver.allocate(scratchBytes + MAX_BLOCKS * sumBytes), driver::free);
            DeviceStream stream = taken.register(driver.openStream(Priority.NORMAL), DeviceStream::close);
            DeviceEvent event = taken.register(driver.openEvent(), DeviceEvent::close);
            long readBytes = DeviceGeometry.pages(MAX_BLOCKS * sumBytes); // what is registered is whole pages
            MemorySegment read = arena.allocate(readBytes, DeviceGeometry.PAGE);
            MemorySegment registered =
                    DeviceTierResources.register(driver, read); // else a copy has the tier's thread wait
            if (registered != null) {
                taken.register(registered, driver::unregister);
            }
            return new ScrubResources(
                    kernels,
                    stream,
                    event,
                    scratch,
                    scratch.slice(scratchBytes, MAX_BLOCKS * sumBytes),
                    sumBytes,
                    read,
                    arena,
                    taken);
        } catch (DeviceException refused) {
            arena.close();
            throw taken.releaseAfter(refused);
        }
    }

    /// Has the next blocks summed up, one behind the other.
    private void begin(DeviceBlockTable blocks) {
        int count = Math.min(MAX_BLOCKS, blocks.blocks() - good);
        if (count == 0) {
            answer();
            return;
        }
        ScrubResources with = resources();
        for (int i = 0; i < count; i++) {
            DeviceSpan block = blocks.entry(good + i).span();
            long sums = GpuKernels.crcSumBytes(block.bytes());
            with.kernels.crc32c(
                    with.stream,
                    block,
                    with.scratch.slice(0, GpuKernels.crcScratchBytes(block.bytes())),
                    with.sums.slice(i * with.sumBytes, sums));
        }
        with.stream.copyToHost(with.sums.address(), with.read.asSlice(0, count * with.sumBytes));
        with.stream.record(with.event);
    }

    private int compareSums() {
        ScrubResources with = resources;
        DeviceBlockTable blocks = table;
        ScrubRequest by = current;
        if (with == null || blocks == null || by == null || !with.event.isReached()) {
            return 0;
        }
        int count = Math.min(MAX_BLOCKS, blocks.blocks() - good);
        for (int i = 0; i < count; i++) {
            DeviceEntry entry = blocks.entry(good);
            long bytes = GpuKernels.crcSumBytes(entry.block().bytes());
            int found = GpuKernels.blockChecksum(with.read.asSlice(i * with.sumBytes, bytes));
            if (found != entry.block().checksum()) {
                damagedBlocks(entry);
                blocks.truncate(good);
                answer();
                return 1;
            }
            good++;
        }
        tryBegin(blocks, by);
        return 1;
    }

    @SuppressWarnings("NonAtomicVolatileUpdate") // one thread writes
    private void damagedBlocks(DeviceEntry entry) {
        index.remove(entry);
        damagedBlocks++;
    }

    private void answer() {
        ScrubRequest present = current;
        DeviceBlockTable blocks = table;
        current = null;
        table = null;
        if (present != null && blocks != null && !present.result.complete(blocks)) {
            blocks.close(); // the caller gave up
        }
    }

    /// Nothing is found any more: callers that wait get an empty table.
    void stop() {
        stopped = true;
        DeviceBlockTable blocks = table;
        if (blocks != null) {
            blocks.truncate(0);
            answer();
        }
        failPending();
    }

    private void failPending() {
        for (ScrubRequest next = requests.poll(); next != null; next = requests.poll()) {
            DeviceBlockTable nothing = next.blocks.get();
            nothing.truncate(0);
            if (!next.result.complete(nothing)) {
                nothing.close();
            }
        }
    }

    /// Returns whether the device has no work of it.
    boolean isIdle() {
        ScrubResources present = resources;
        return present == null || present.stream.isIdle();
    }

    /// Gives back what was taken. The device is at nothing of it, or has ended.
    ///
    /// @throws DeviceException when the device refuses; host memory that it may still write stays
    ///     for good
    void close() {
        ScrubResources present = resources;
        if (present != null) {
            resources = null;
            present.holdings.releaseAll();
            present.arena.close();
        }
    }
}
