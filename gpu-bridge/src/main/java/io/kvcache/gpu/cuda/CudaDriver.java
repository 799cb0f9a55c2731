package io.kvcache.gpu.cuda;

import io.kvcache.gpu.cuda.CudaEvent.CudaEventHandle;
import io.kvcache.gpu.cuda.CudaHandles.CudaStreamHandle;
import io.kvcache.gpu.cuda.CudaHandles.DevicePointer;
import io.kvcache.gpu.driver.AllocationTable;
import io.kvcache.gpu.driver.CopyBatch.CopyDirection;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.DeviceInfo;
import io.kvcache.gpu.driver.DeviceDriver.ResourceCounts;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceIpc;
import io.kvcache.gpu.driver.DeviceProgram;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.DeviceThreadBinding;
import io.kvcache.gpu.driver.PinnedHostRanges;
import io.kvcache.gpu.driver.VirtualMemory;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.IntSupplier;
import java.util.function.Supplier;
import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/// A device of NVIDIA's, with its primary context.
///
/// JCuda's exceptions are switched off for the whole process when the first is opened: every answer is
/// looked at here.
public final class CudaDriver implements DeviceDriver {

    private static final Logger LOG = System.getLogger(CudaDriver.class.getName());

    private final CudaContext context;
    private final CudaMemcpyBatch batches;
    private final CudaModules modules;
    private final CudaLibrary library;
    private final int ordinal;
    private final DeviceThreadBinding thread = new DeviceThreadBinding();
    private final PinnedHostRanges pinnedRanges = new PinnedHostRanges();
    private final PinnedHostMemory pinnedMemory = PinnedHostMemory.ofProcess();
    private final AllocationTable allocations = new AllocationTable();
    private final CudaStreams streams = new CudaStreams(this);
    private final Set<CudaEvent> events = new HashSet<>();
    private @Nullable CudaVmm virtual;
    private @Nullable CudaIpc sharing;
    private boolean failed;
    private boolean lost;
    private boolean closed;

    private CudaDriver(SymbolLookup symbols, int ordinal) {
        library = new CudaLibrary(symbols);
        this.ordinal = ordinal;
        batches = new CudaMemcpyBatch(library);
        modules = new CudaModules(this, library);
        context = new CudaContext(library, ordinal);
    }

    /// Opens a device by the calling thread.
    ///
    /// @param ordinal which, from 0 on, in the driver's order
    /// @throws DeviceException when there is no driver or no such device
    public static CudaDriver open(int ordinal) {
        return new CudaDriver(CudaLibrary.load(), ordinal);
    }

    /// The same with other functions of the driver's, as an older one has them.
    static CudaDriver open(SymbolLookup symbols, int ordinal) {
        return new CudaDriver(symbols, ordinal);
    }

    CudaLibrary library() {
        return library;
    }

    /// To be called before anything else is: makes the context the calling thread's.
    void enter() {
        if (closed) {
            throw new IllegalStateException("the device is closed");
        }
        if (thread.bindCurrentThread()) {
            try {
                context.bind();
            } catch (DeviceException refused) {
                thread.reset();
                throw refused;
            }
        }
    }

    void check(String call, int result) {
        try {
            CudaResult.check(call, result);
        } catch (DeviceException refused) {
            throw recordFailure(refused);
        }
    }

    /// The same for what others gave, or the machine may forbid, see [CudaResult#checkFallible].
    void checkFallible(String call, int result) {
        try {
            CudaResult.checkFallible(call, result);
        } catch (DeviceException refused) {
            throw recordFailure(refused);
        }
    }

    private <T> T trackFailure(Supplier<T> asked) {
        try {
            return asked.get();
        } catch (DeviceException refused) {
            throw recordFailure(refused);
        }
    }

    private DeviceException recordFailure(DeviceException refused) {
        failed |= refused.error().isFatal();
        lost |= refused.error().isFatal();
        return refused;
    }

    /// Gives something back; what the driver has against that is noted, as nothing can be done about it.
    /// It goes with the context at the latest.
    ///
    /// @return whether it is given back
    boolean releaseQuietly(String call, IntSupplier giveBack) {
        try {
            enter();
            CudaResult.check(call, giveBack.getAsInt());
            return true;
        } catch (DeviceException refused) {
            markFailed("not given back", refused);
            return false;
        }
    }

    /// The driver did not do what cannot be refused: it is of no use any more.
    void markFailed(String what, DeviceException refused) {
        failed = true;
        lost |= refused.error().isFatal();
        LOG.log(Level.WARNING, "{0}: {1}", what, refused.getMessage());
    }

    /// Returns whether the device reported itself lost, or did not finish its work.
    boolean isLost() {
        return lost;
    }

    CudaStreams streams() {
        return streams;
    }

    /// Returns whether copies of this direction may be batched.
    boolean canBatch(CopyDirection direction) {
        return batches.isAvailable()
                && (direction == CopyDirection.WITHIN || trackFailure(context::supportsHostPointers));
    }

    PinnedHostRanges pinnedRanges() {
        return pinnedRanges;
    }

    AllocationTable allocations() {
        return allocations;
    }

    CudaEvent requireOwned(DeviceEvent event) {
        if (event instanceof CudaEvent mine && events.contains(mine)) {
            return mine;
        }
        throw new DeviceException(DeviceError.BAD_REQUEST, "event", "closed, or of another device");
    }

    /// Returns whether a result means that work is complete. If it is not, a later call may return another result.
    ///
    /// @throws DeviceException when the device is of no use any more
    boolean isComplete(String call, int result) {
        if (result == CudaResult.SUCCESS || result == CudaResult.NOT_READY) {
            return result == CudaResult.SUCCESS;
        }
        try {
            check(call, result);
        } catch (DeviceException refused) {
            if (refused.error().isFatal()) {
                throw refused;
            }
        }
        return false;
    }

    void forget(CudaEvent event) {
        events.remove(event);
    }

    @Override
    public DeviceInfo info() {
        enter();
        return trackFailure(context::info);
    }

    @Override
    public long freeMemoryBytes() {
        enter();
        long[] free = new long[1];
        check("cuMemGetInfo", JCudaDriver.cuMemGetInfo(free, new long[1]));
        return free[0];
    }

    @Override
    public DeviceSpan allocate(long bytes) {
        enter();
        if (bytes < 1) {
            throw new IllegalArgumentException("allocating " + bytes + " bytes; it takes 1 and up");
        }
        DevicePointer pointer = new DevicePointer();
        check("cuMemAlloc", JCudaDriver.cuMemAlloc(pointer, bytes));
        DeviceSpan slab = new DeviceSpan(pointer.address(), bytes);
        allocations.add(slab);
        return slab;
    }

    @Override
    public void free(DeviceSpan span) {
        enter();
        allocations.requireSlab(span);
        drain();
        allocations.remove(span);
        freeSlab(span);
    }

    private void freeSlab(DeviceSpan slab) {
        DevicePointer pointer = new DevicePointer(slab.address().value());
        releaseQuietly("cuMemFree", () -> JCudaDriver.cuMemFree(pointer));
    }

    /// Waits for all that streams were given, see [CudaStreams].
    void drain() {
        streams.drain();
    }

    @Override
    public void adopt(DeviceSpan span) {
        enter();
        allocations.adopt(span);
    }

    @Override
    public void disown(DeviceSpan span) {
        enter();
        allocations.disown(span);
    }

    @Override
    public void register(MemorySegment host) {
        enter();
        PinnedHostRanges.requireSource(host);
        pinnedRanges.add(host);
        try {
            checkFallible("cuMemHostRegister", pinnedMemory.add(host, context));
        } catch (DeviceException refused) {
            pinnedRanges.remove(host);
            throw refused;
        }
    }

    @Override
    public boolean isReachable(MemorySegment host) {
        enter();
        return pinnedRanges.covers(host) && trackFailure(context::supportsHostPointers);
    }

    @Override
    public void unregister(MemorySegment host) {
        enter();
        drain();
        pinnedRanges.remove(host);
        unregister(host.address());
    }

    private void unregister(long start) {
        if (!pinnedMemory.remove(start, context, this::releaseQuietly)) {
            thread.reset(); // the context is to be bound anew
        }
    }

    @Override
    public DeviceStream openStream(Priority priority) {
        enter();
        CudaStreamHandle handle = new CudaStreamHandle();
        int number = switch (priority) {
            case NORMAL -> 0;
            case HIGH -> trackFailure(context::highestPriority);
        };
        check(
                "cuStreamCreateWithPriority",
                JCudaDriver.cuStreamCreateWithPriority(handle, CUstream_flags.CU_STREAM_NON_BLOCKING, number));
        return add(new CudaStream(this, handle, batches, modules, false));
    }

    private CudaStream add(CudaStream stream) {
        streams.add(stream);
        return stream;
    }

    /// Makes a stream known that the engine made by JCuda in the primary context of this device, as for its own
    /// libraries. It stays the engine's: closing what this returns leaves it, and has to come before it is
    /// destroyed.
    public DeviceStream adoptStream(CUstream stream) {
        enter();
        return add(new CudaStream(this, new CudaStreamHandle(stream), batches, modules, true));
    }

    @Override
    public DeviceProgram load(String code) {
        enter();
        return modules.load(code);
    }

    @Override
    public VirtualMemory virtualMemory() {
        enter();
        virtual = virtual == null ? new CudaVmm(this, library, ordinal) : virtual;
        return virtual;
    }

    @Override
    public DeviceEvent openEvent() {
        enter();
        CUevent handle = new CUevent();
        check("cuEventCreate", JCudaDriver.cuEventCreate(handle, CUevent_flags.CU_EVENT_DISABLE_TIMING));
        return addEvent(new CudaEventHandle.JcudaEvent(handle));
    }

    CudaEvent addEvent(CudaEventHandle handle) {
        CudaEvent event = new CudaEvent(this, handle);
        events.add(event);
        return event;
    }

    @Override
    public DeviceIpc ipc() {
        enter();
        sharing = sharing == null ? new CudaIpc(this, library) : sharing;
        return sharing;
    }

    /// By which call of the driver's batches are copied, and how many of them it took and declined: in
    /// words, for a first look at a machine.
    public String describeBatching() {
        return batches.describe();
    }

    @Override
    public ResourceCounts resourceCounts() {
        return new ResourceCounts(
                allocations.count(),
                allocations.bytes(),
                pinnedRanges.count(),
                streams.count(),
                events.size(),
                modules.count(),
                virtual == null ? 0 : virtual.resourceCount(),
                sharing == null ? 0 : sharing.openCount());
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        ResourceCounts left = resourceCounts();
        boolean leaked = !failed && !left.equals(ResourceCounts.NONE);
        releaseAll();
        if (context.release() != CudaResult.SUCCESS) {
            releaseQuietly("cuDevicePrimaryCtxRelease", context::release); // once more: all that is left goes with it
        }
        closed = true;
        if (leaked) {
            throw new IllegalStateException("the device was closed before all was given back: " + left);
        }
    }

    /// Releases the rest. Without it, memory would stay until the context goes, which other drivers of this
    /// process may share.
    private void releaseAll() {
        streams.closeAll();
        List.copyOf(events).forEach(CudaEvent::close);
        modules.closeAll();
        if (virtual != null) {
            virtual.releaseAll();
        }
        if (sharing != null) {
            sharing.releaseAll();
        }
        pinnedRanges.startAddresses().forEach(this::unregister);
        allocations.allocations().forEach(this::freeSlab);
    }
}
