package io.kvcache.gpu.kit;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.spi.HostMemory;
import io.kvcache.gpu.cuda.CudaDriver;
import io.kvcache.gpu.cuda.IpcExporterProcess;
import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.driver.VirtualMemory.PhysicalPages;
import io.kvcache.gpu.kernel.GpuKernels;
import io.kvcache.gpu.paging.CopyThreshold;
import io.kvcache.gpu.paging.HostPageCopier;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.options.MemoryOptions;
import io.kvcache.tiers.options.MemoryOptions.HugePages;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/// What is to be known first of a machine with a GPU that nobody has tried yet, a line each: what it is and
/// what it lets us do. Nothing here is a benchmark but by the way.
public final class GpuSmokeChecks {

    private static final int PIECE_BYTES = 64 << 10;
    private static final long REGISTERED_BYTES = 256L << 20;
    private static final long SHARED_BYTES = 2 << 20;

    private final DeviceDriver driver;
    private final Consumer<String> lines;

    /// What the process ends with where there is no GPU that can be opened.
    private static final int NO_DEVICE = 3;

    private GpuSmokeChecks(DeviceDriver driver, Consumer<String> lines) {
        this.driver = driver;
        this.lines = lines;
    }

    /// Prints the lines of the first GPU. Ends with 3 when there is none that can be opened.
    public static void main(String... arguments) {
        DeviceDriver driver;
        try {
            driver = CudaDriver.open(0);
        } catch (DeviceException refused) {
            System.out.println("device: " + refused.getMessage());
            System.exit(NO_DEVICE);
            return;
        }
        try {
            runChecks(driver, System.out::println);
            driver.close();
        } catch (IllegalStateException left) {
            System.out.println("closing: " + left.getMessage());
        }
    }

    /// @param lines told of each as soon as it is known, as one after it may hang, or end the
    ///     process
    static void runChecks(DeviceDriver driver, Consumer<String> lines) {
        new GpuSmokeChecks(driver, lines).all();
    }

    /// Finds something out, in words.
    private interface CheckAction {

        String found() throws IOException;
    }

    private void line(String what, CheckAction checkAction) {
        String found;
        try {
            found = checkAction.found();
        } catch (DeviceException refused) {
            found = "refused: " + refused.getMessage();
        } catch (IOException | RuntimeException | LinkageError bug) { // the next may still find something
            found = "refused: " + bug;
        }
        lines.accept(what + ": " + found);
    }

    private void all() {
        line("device", () -> driver.info().toString());
        line("libcuda", GpuSmokeChecks::libraries);
        line("kernels load", () -> millis(() -> GpuKernels.load(driver, 1).close()));
        line("pieces are copied", this::threshold);
        line("pieces of host memory are copied", this::hostThreshold);
        line("batches", this::batches);
        line("registering small pages", () -> registering(HugePages.OFF));
        line("registering huge pages", () -> registering(HugePages.ON));
        line("pages of virtual memory", () -> driver.virtualMemory().pageBytes() + " bytes");
        line("memory by descriptor", this::byDescriptor);
        line("memory by token", this::byToken);
        line("events by token", this::events);
        line("memory and event of another process", this::fromAnother);
        line("nvidia-fs", () -> Files.exists(Path.of("/proc/driver/nvidia-fs")) ? "there" : "not there");
    }

    private static String millis(Runnable work) {
        long since = System.nanoTime();
        work.run();
        return String.format(Locale.ROOT, "%.1f ms", (System.nanoTime() - since) / 1e6);
    }

    /// Which are mapped: the loader has found them.
    private static String libraries() throws IOException {
        return String.join(
                ", ",
                Files.readAllLines(Path.of("/proc/self/maps")).stream()
                        .filter(line -> line.contains("libcuda.so"))
                        .map(line -> line.substring(line.indexOf('/')))
                        .distinct()
                        .toList());
    }

    private String threshold() {
        try (GpuKernels kernels = GpuKernels.load(driver, 32)) {
            return "from "
                    + CopyThreshold.measure(driver, kernels, System::nanoTime).pieceBytes() + " bytes on";
        }
    }

    /// Of an engine's pages, at a door.
    private String hostThreshold() {
        try (HostPageCopier copier = HostPageCopier.open(driver, measured -> measured.measure(System::nanoTime))) {
            return "from " + copier.threshold().pieceBytes() + " bytes on";
        }
    }

    /// One of two pieces each way, as the driver answers what it can do with them only then.
    private String batches() {
        DeviceSpan slab = driver.allocate(4L * PIECE_BYTES);
        try (Arena arena = Arena.ofShared();
                DeviceStream stream = driver.openStream(Priority.NORMAL);
                DeviceEvent event = driver.openEvent()) {
            MemorySegment content = arena.allocate(4L * PIECE_BYTES, 4096);
            CopyBatch there = CopyBatch.toDevice();
            CopyBatch back = CopyBatch.toHost();
            for (int i = 0; i < 2; i++) {
                long at = 2L * i * PIECE_BYTES; // with a gap, so that the two do not become one
                there.add(content.asSlice(at, PIECE_BYTES), slab.address().plus(at));
                back.add(content.asSlice(at, PIECE_BYTES), slab.address().plus(at));
            }
            driver.register(content);
            try {
                stream.copy(there);
                stream.copy(back);
                stream.record(event);
                boolean ended = event.await(TimeUnit.SECONDS.toNanos(30));
                String way = driver instanceof CudaDriver cuda ? cuda.describeBatching() : "none";
                return ended ? way : "AND THEY DO NOT END: " + way;
            } finally {
                driver.unregister(content);
            }
        } finally {
            driver.free(slab);
        }
    }

    /// Memory that was touched.
    private String registering(HugePages pages) {
        MemoryOptions options = MemoryOptions.defaults().withHugePages(pages);
        try (HostMemory host = new MappedMemorySource(options).reserve("registered", REGISTERED_BYTES)) {
            MemorySegment memory = host.segment();
            memory.fill((byte) 1);
            String took = millis(() -> driver.register(memory));
            driver.unregister(memory);
            return took + " for " + (REGISTERED_BYTES >> 20) + " MiB";
        }
    }

    private String byDescriptor() {
        VirtualMemory virtual = driver.virtualMemory();
        PhysicalPages pages = virtual.createShared(virtual.pageBytes());
        DeviceSpan range = virtual.reserve(2 * virtual.pageBytes());
        int descriptor = virtual.exportDescriptor(pages); // goes with this process, which ends soon
        PhysicalPages opened = virtual.open(descriptor, virtual.pageBytes());
        DeviceSpan first = range.slice(0, virtual.pageBytes());
        DeviceSpan second = range.slice(virtual.pageBytes(), virtual.pageBytes());
        virtual.map(first.address(), pages);
        virtual.map(second.address(), opened);
        boolean same = shared(first, second);
        virtual.unmap(first.address(), pages);
        virtual.unmap(second.address(), opened);
        virtual.release(pages);
        virtual.release(opened);
        virtual.unreserve(range);
        return same ? "written by one, read by the other" : "opened, AND IT IS NOT THE SAME MEMORY";
    }

    private boolean shared(DeviceSpan written, DeviceSpan read) {
        try (Arena arena = Arena.ofShared();
                DeviceStream stream = driver.openStream(Priority.NORMAL);
                DeviceEvent event = driver.openEvent()) {
            MemorySegment content = arena.allocate(4096);
            MemorySegment back = arena.allocate(4096);
            new BlockContent(5).fill(content);
            stream.copyToDevice(content, written.address());
            stream.copyToHost(read.address(), back);
            stream.record(event);
            return event.await(TimeUnit.SECONDS.toNanos(30)) && back.mismatch(content) == -1;
        }
    }

    private String byToken() {
        DeviceSpan slab = driver.allocate(SHARED_BYTES);
        try {
            return driver.ipc().exportToken(slab).length + " bytes";
        } finally {
            driver.free(slab);
        }
    }

    private String fromAnother() throws IOException {
        try (IpcExporterProcess peer = new IpcExporterProcess(SHARED_BYTES)) {
            DeviceSpan theirs = driver.ipc().open(peer.memory());
            try (DeviceEvent filled = driver.ipc().openEvent(peer.event())) {
                return read(theirs, filled) ? "opened, and its bytes are there" : "opened, AND ITS BYTES ARE WRONG";
            } finally {
                driver.ipc().close(theirs);
            }
        }
    }

    private boolean read(DeviceSpan theirs, DeviceEvent filled) {
        try (Arena arena = Arena.ofShared();
                DeviceStream stream = driver.openStream(Priority.NORMAL);
                DeviceEvent event = driver.openEvent()) {
            MemorySegment back = arena.allocate(SHARED_BYTES);
            MemorySegment expected = arena.allocate(SHARED_BYTES).fill(IpcExporterProcess.FILLED);
            stream.waitFor(filled);
            stream.copyToHost(theirs.address(), back);
            stream.record(event);
            return event.await(TimeUnit.SECONDS.toNanos(30)) && back.mismatch(expected) == -1;
        }
    }

    private String events() {
        try (DeviceEvent event = driver.ipc().createSharedEvent()) {
            return driver.ipc().exportToken(event).length + " bytes";
        }
    }
}
