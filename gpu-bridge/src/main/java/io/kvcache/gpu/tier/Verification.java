package io.kvcache.gpu.tier;

import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.ResourceScope;
import io.kvcache.gpu.kernel.GpuKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Looks at blocks where they lie: the device computes the store's checksum of each, and what differs is
/// found by nobody any more. Takes what it needs of the device when it is first asked.
///
/// Owned by the tier's thread, but for what says otherwise.
final class Verification {

    /// Blocks in one go.
    private static final int MOST_BLOCKS = 64;

    /// Few of an engine's processors: nobody is in a hurry.
    private static final int THREAD_GROUPS = 32;

    private final DeviceDriver driver;
    private final DeviceIndex index;
    private final long mostBlockBytes;
    private final Queue<Asked> asked = new ConcurrentLinkedQueue<>();
    private volatile boolean ended;
    private @Nullable Means means;
    private @Nullable Asked underWay;
    private @Nullable DeviceBlockTable table;
    private int good;
    private volatile long damaged;

    /// @param blocks pins what is to be looked at, once
    private record Asked(Supplier<DeviceBlockTable> blocks, CompletableFuture<DeviceBlockTable> answer) {}

    /// What is taken of the device.
    ///
    /// @param sums of one block each, `sumBytes` apart
    /// @param read where they come to
    /// @param arena of that
    /// @param holdings all that is of the device
    private record Means(
            GpuKernels kernels,
            DeviceStream stream,
            DeviceEvent event,
            DeviceSpan scratch,
            DeviceSpan sums,
            long sumBytes,
            MemorySegment read,
            Arena arena,
            ResourceScope holdings) {}

    Verification(DeviceDriver driver, DeviceIndex index, long mostBlockBytes) {
        this.driver = driver;
        this.index = index;
        this.mostBlockBytes = mostBlockBytes;
    }

    /// Asks for those of a table, up to the first that is not as it should be. Any thread.
    ///
    /// @param blocks pins them, called once by the tier's thread; with an index that is ended it
    ///     has none
    CompletableFuture<DeviceBlockTable> ask(Supplier<DeviceBlockTable> blocks) {
        CompletableFuture<DeviceBlockTable> answer = new CompletableFuture<>();
        asked.add(new Asked(blocks, answer));
        if (ended) {
            answerAll();
        }
        return answer;
    }

    boolean busy() {
        return underWay != null || !asked.isEmpty();
    }

    long damaged() {
        return damaged;
    }

    /// A turn.
    ///
    /// @return how much was done
    int tick() {
        if (underWay != null) {
            return look();
        }
        Asked next = asked.poll();
        if (next == null) {
            return 0;
        }
        underWay = next;
        DeviceBlockTable blocks = next.blocks.get();
        table = blocks;
        good = 0;
        tryToBegin(blocks, next);
        return 1;
    }

    /// What the device refuses is for who asked, as of a device that runs no code; the tier serves on.
    private void tryToBegin(DeviceBlockTable blocks, Asked by) {
        try {
            begin(blocks);
        } catch (DeviceException refused) {
            if (refused.error().isFatal()) {
                throw refused;
            }
            underWay = null;
            table = null;
            blocks.close();
            by.answer.completeExceptionally(refused);
        }
    }

    private Means means() {
        Means present = means;
        if (present == null) {
            present = take();
            means = present;
        }
        return present;
    }

    private Means take() {
        ResourceScope taken = new ResourceScope();
        Arena arena = Arena.ofShared();
        try {
            GpuKernels kernels = taken.register(GpuKernels.load(driver, THREAD_GROUPS), GpuKernels::close);
            long sumBytes = GpuKernels.crcSumBytes(mostBlockBytes);
            long scratchBytes = GpuKernels.crcScratchBytes(mostBlockBytes);
            DeviceSpan scratch = taken.register(driver.allocate(scratchBytes + MOST_BLOCKS * sumBytes), driver::free);
            DeviceStream stream = taken.register(driver.openStream(Priority.NORMAL), DeviceStream::close);
            DeviceEvent event = taken.register(driver.openEvent(), DeviceEvent::close);
            long readBytes = DeviceGeometry.pages(MOST_BLOCKS * sumBytes); // what is registered is whole pages
            MemorySegment read = arena.allocate(readBytes, DeviceGeometry.PAGE);
            MemorySegment registered = TierDevice.register(driver, read); // else a copy has the tier's thread wait
            if (registered != null) {
                taken.register(registered, driver::unregister);
            }
            return new Means(
                    kernels,
                    stream,
                    event,
                    scratch,
                    scratch.slice(scratchBytes, MOST_BLOCKS * sumBytes),
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
        int count = Math.min(MOST_BLOCKS, blocks.blocks() - good);
        if (count == 0) {
            answer();
            return;
        }
        Means with = means();
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

    private int look() {
        Means with = means;
        DeviceBlockTable blocks = table;
        Asked by = underWay;
        if (with == null || blocks == null || by == null || !with.event.isReached()) {
            return 0;
        }
        int count = Math.min(MOST_BLOCKS, blocks.blocks() - good);
        for (int i = 0; i < count; i++) {
            DeviceEntry entry = blocks.entry(good);
            long bytes = GpuKernels.crcSumBytes(entry.block().bytes());
            int found = GpuKernels.blockChecksum(with.read.asSlice(i * with.sumBytes, bytes));
            if (found != entry.block().checksum()) {
                damaged(entry);
                blocks.shorten(good);
                answer();
                return 1;
            }
            good++;
        }
        tryToBegin(blocks, by);
        return 1;
    }

    @SuppressWarnings("NonAtomicVolatileUpdate") // one thread writes
    private void damaged(DeviceEntry entry) {
        index.remove(entry);
        damaged++;
    }

    private void answer() {
        Asked present = underWay;
        DeviceBlockTable blocks = table;
        underWay = null;
        table = null;
        if (present != null && blocks != null && !present.answer.complete(blocks)) {
            blocks.close(); // nobody waits any more
        }
    }

    /// Nothing is found any more: whoever waits has nothing.
    void end() {
        ended = true;
        DeviceBlockTable blocks = table;
        if (blocks != null) {
            blocks.shorten(0);
            answer();
        }
        answerAll();
    }

    private void answerAll() {
        for (Asked next = asked.poll(); next != null; next = asked.poll()) {
            DeviceBlockTable nothing = next.blocks.get();
            nothing.shorten(0);
            if (!next.answer.complete(nothing)) {
                nothing.close();
            }
        }
    }

    /// Whether the device is at nothing of it.
    boolean quiet() {
        Means present = means;
        return present == null || present.stream.isIdle();
    }

    /// Gives back what was taken. The device is at nothing of it, or has ended.
    ///
    /// @throws DeviceException when the device refuses; host memory that it may still write stays
    ///     for good
    void close() {
        Means present = means;
        if (present != null) {
            means = null;
            present.holdings.releaseAll();
            present.arena.close();
        }
    }
}
