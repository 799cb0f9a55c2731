package io.kvcache.gpu.cuda;

import io.kvcache.gpu.cuda.CudaEvent.CudaEventHandle;
import io.kvcache.gpu.cuda.CudaHandles.CudaStreamHandle;
import io.kvcache.gpu.cuda.CudaHandles.DevicePointer;
import io.kvcache.gpu.cuda.CudaHandles.HostPointer;
import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.CopyBatch.CopyRanges;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceProgram.DeviceKernel;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.PinnedHostRanges;
import java.lang.foreign.MemorySegment;
import jcuda.driver.JCudaDriver;

/// A stream of its own, that does not wait for the default one.
final class CudaStream implements DeviceStream {

    /// Copies of one call of the driver's: the device is at the first while the next are handed over.
    static final int MAX_BATCH = 64;

    private final CudaDriver driver;
    private final CudaStreamHandle handle;
    private final CudaMemcpyBatch batches;
    private final CudaModules modules;
    private final boolean isAdopted;
    private boolean closed;

    /// @param isAdopted whether others destroy it
    CudaStream(
            CudaDriver driver,
            CudaStreamHandle handle,
            CudaMemcpyBatch batches,
            CudaModules modules,
            boolean isAdopted) {
        this.driver = driver;
        this.isAdopted = isAdopted;
        this.handle = handle;
        this.batches = batches;
        this.modules = modules;
    }

    private void enter() {
        driver.enter();
        if (closed) {
            throw new IllegalStateException("the stream is closed");
        }
    }

    @Override
    public void copyToDevice(MemorySegment from, DeviceAddress to) {
        PinnedHostRanges.requireSource(from);
        if (crossesPinnedRange(from)) {
            CopyBatch pieces = CopyBatch.toDevice();
            pieces.add(from, to);
            copy(pieces);
            return;
        }
        enter();
        driver.allocations().requireSpan("toDevice", to, from.byteSize());
        toDevice(from.address(), to.value(), from.byteSize());
    }

    private void toDevice(long from, long to, long bytes) {
        driver.check(
                "cuMemcpyHtoDAsync",
                JCudaDriver.cuMemcpyHtoDAsync(new DevicePointer(to), new HostPointer(from), bytes, handle));
    }

    @Override
    public void copyToHost(DeviceAddress from, MemorySegment to) {
        PinnedHostRanges.requireTarget(to);
        if (crossesPinnedRange(to)) {
            CopyBatch pieces = CopyBatch.toHost();
            pieces.add(to, from);
            copy(pieces);
            return;
        }
        enter();
        driver.allocations().requireSpan("toHost", from, to.byteSize());
        toHost(from.value(), to.address(), to.byteSize());
    }

    private void toHost(long from, long to, long bytes) {
        driver.check(
                "cuMemcpyDtoHAsync",
                JCudaDriver.cuMemcpyDtoHAsync(new HostPointer(to), new DevicePointer(from), bytes, handle));
    }

    private boolean crossesPinnedRange(MemorySegment host) {
        return driver.pinnedRanges().crossesBoundary(host.address(), host.byteSize());
    }

    @Override
    public void copyWithinDevice(DeviceAddress from, DeviceAddress to, long bytes) {
        enter();
        driver.allocations().requireSpan("within", from, bytes);
        driver.allocations().requireSpan("within", to, bytes);
        within(from.value(), to.value(), bytes);
    }

    private void within(long from, long to, long bytes) {
        driver.check(
                "cuMemcpyDtoDAsync",
                JCudaDriver.cuMemcpyDtoDAsync(new DevicePointer(to), new DevicePointer(from), bytes, handle));
    }

    @Override
    public void copy(CopyBatch batch) {
        enter();
        CopyRanges runs = batch.toRanges(driver.pinnedRanges(), driver.allocations());
        for (int i = 0; i < runs.count(); i++) {
            requireSpans(runs, i);
        }
        int done = runs.count() > 1 && driver.canBatch(runs.direction()) ? copyBatched(runs) : 0;
        for (int i = done; i < runs.count(); i++) {
            copy(runs, i);
        }
    }

    /// Returns how many were copied before the driver declined; all, if it did not.
    private int copyBatched(CopyRanges runs) {
        for (int first = 0; first < runs.count(); first += MAX_BATCH) {
            int result = batches.copyRanges(runs, first, Math.min(runs.count() - first, MAX_BATCH), handle.value());
            if (batches.isDeclined(result)) {
                return first;
            }
            driver.check("cuMemcpyBatchAsync", result);
        }
        return runs.count();
    }

    private void requireSpans(CopyRanges runs, int index) {
        long bytes = runs.bytes(index);
        switch (runs.direction()) {
            case TO_DEVICE -> driver.allocations().requireSpan("copy", new DeviceAddress(runs.to(index)), bytes);
            case TO_HOST -> driver.allocations().requireSpan("copy", new DeviceAddress(runs.from(index)), bytes);
            case WITHIN -> {
                driver.allocations().requireSpan("copy", new DeviceAddress(runs.from(index)), bytes);
                driver.allocations().requireSpan("copy", new DeviceAddress(runs.to(index)), bytes);
            }
        }
    }

    private void copy(CopyRanges runs, int index) {
        switch (runs.direction()) {
            case TO_DEVICE -> toDevice(runs.from(index), runs.to(index), runs.bytes(index));
            case TO_HOST -> toHost(runs.from(index), runs.to(index), runs.bytes(index));
            case WITHIN -> within(runs.from(index), runs.to(index), runs.bytes(index));
        }
    }

    @Override
    public void fill(DeviceSpan span, byte value) {
        enter();
        driver.allocations().requireSpan("fill", span.address(), span.bytes());
        driver.check(
                "cuMemsetD8Async",
                JCudaDriver.cuMemsetD8Async(new DevicePointer(span.address().value()), value, span.bytes(), handle));
    }

    @Override
    public void launch(DeviceKernel kernel, int groups, int threads, long... arguments) {
        enter();
        driver.check(
                "cuLaunchKernel " + kernel.name(), modules.launch(kernel, groups, threads, arguments, handle.value()));
    }

    @Override
    public void record(DeviceEvent event) {
        enter();
        driver.check("cuEventRecord", driver.requireOwned(event).handle().record(handle));
    }

    @Override
    public void waitFor(DeviceEvent event) {
        enter();
        driver.check("cuStreamWaitEvent", driver.requireOwned(event).handle().blockStream(handle));
    }

    @Override
    public boolean isIdle() {
        enter();
        int result = JCudaDriver.cuStreamQuery(handle);
        if (result == CudaResult.NOT_READY) {
            return false;
        }
        driver.check("cuStreamQuery", result);
        return true;
    }

    /// Returns whether the driver reports all work as done. Also usable for a stream that is being closed.
    boolean queryIdle() {
        return driver.isComplete("cuStreamQuery", JCudaDriver.cuStreamQuery(handle));
    }

    /// Puts a mark behind what it was given. Answers as the driver does.
    int recordMark(CudaEventHandle mark) {
        return mark.record(handle);
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        driver.streams().onStreamClosing(this);
        if (!isAdopted) {
            driver.releaseQuietly("cuStreamDestroy", () -> JCudaDriver.cuStreamDestroy(handle));
        }
    }
}
