package io.kvcache.gpu.cuda;

import io.kvcache.gpu.cuda.CudaHandles.HostPointer;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import java.util.function.IntSupplier;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/// Host memory as it is registered in this process, for all of its devices: once, by the first
/// driver that asks, until the last has let go of it. Several drivers for the memory of one store
/// are usual: a tier has one for each of its parts, and a door one for each engine, perhaps on
/// another GPU.
///
/// A driver counts for as long as it is open at most, and keeps its device's context so long. A
/// registration is of the context that it was made in, and goes with that; so where drivers of
/// other devices still count when the last of its own lets go, that context is kept until they have
/// let go too.
///
/// **Threads.** Any. A driver that registers what another is registering waits for that.
final class PinnedHostMemory {

    /// Pinned for all contexts, not only for the one that it is made in.
    private static final int PORTABLE = 1;

    private static final PinnedHostMemory INSTANCE = new PinnedHostMemory();

    private final Map<Long, PinnedRange> rangesByStart = new HashMap<>();

    private static final class PinnedRange {
        private final long bytes;

        /// The device of the context that it is in.
        private final int owner;

        /// Drivers that count, by device.
        private final Map<Integer, Integer> users = new HashMap<>();

        /// The context, where no driver keeps it any more.
        private @Nullable CudaContext kept;

        PinnedRange(long bytes, int owner) {
            this.bytes = bytes;
            this.owner = owner;
        }
    }

    /// Does a call; what the driver has against it is noted, as nothing can be done about it.
    @FunctionalInterface
    interface BestEffortCall {

        /// Answers whether the driver did it.
        boolean attempt(String call, IntSupplier made);
    }

    private PinnedHostMemory() {}

    static PinnedHostMemory ofProcess() {
        return INSTANCE;
    }

    /// Registers memory, or counts one more user of it. Answers as the driver does.
    synchronized int add(MemorySegment host, CudaContext context) {
        PinnedRange known = rangesByStart.get(host.address());
        if (known == null || known.bytes != host.byteSize()) {
            int result = JCudaDriver.cuMemHostRegister(new HostPointer(host), host.byteSize(), PORTABLE);
            if (result != CudaResult.SUCCESS) {
                return result;
            }
            known = new PinnedRange(host.byteSize(), context.ordinal());
            rangesByStart.put(host.address(), known);
        }
        known.users.merge(context.ordinal(), 1, Integer::sum);
        return CudaResult.SUCCESS;
    }

    /// Counts one less, and unregisters when that was the last.
    ///
    /// @param context current in the calling thread
    /// @return whether it still is: the way back from another device's may be refused
    synchronized boolean remove(long start, CudaContext context, BestEffortCall bestEffortCall) {
        PinnedRange known = rangesByStart.get(start);
        if (known == null) {
            unregister(start, bestEffortCall);
            return true;
        }
        known.users.computeIfPresent(context.ordinal(), (_, users) -> users == 1 ? null : users - 1);
        if (known.users.isEmpty()) {
            rangesByStart.remove(start);
            return end(start, known, context, bestEffortCall);
        }
        if (known.owner == context.ordinal() && !known.users.containsKey(known.owner) && known.kept == null) {
            known.kept = bestEffortCall.attempt("cuDevicePrimaryCtxRetain", context::retain) ? context : null;
        }
        return true;
    }

    /// In the context that it was made in, where that is still there.
    private static boolean end(long start, PinnedRange range, CudaContext context, BestEffortCall bestEffortCall) {
        CudaContext kept = range.kept;
        boolean current = true;
        if (range.owner == context.ordinal()) {
            unregister(start, bestEffortCall);
        } else if (kept != null) {
            if (bestEffortCall.attempt("cuCtxSetCurrent", kept::makeCurrent)) {
                unregister(start, bestEffortCall);
            }
            current = bestEffortCall.attempt("cuCtxSetCurrent", context::makeCurrent);
        }
        if (kept != null && !bestEffortCall.attempt("cuDevicePrimaryCtxRelease", kept::release)) {
            bestEffortCall.attempt("cuDevicePrimaryCtxRelease", kept::release); // once more: else it stays for good
        }
        return current;
    }

    private static void unregister(long start, BestEffortCall bestEffortCall) {
        bestEffortCall.attempt("cuMemHostUnregister", () -> JCudaDriver.cuMemHostUnregister(new HostPointer(start)));
    }
}
