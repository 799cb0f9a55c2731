package io.kvcache.gpu.cuda;

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
/// **Threads.** Any. Who registers what another is registering waits for that.
final class Registrations {

    /// Pinned for all contexts, not only for the one that it is made in.
    private static final int PORTABLE = 1;

    private static final Registrations OF_PROCESS = new Registrations();

    private final Map<Long, Range> byStart = new HashMap<>();

    private static final class Range {
        private final long bytes;

        /// Whose context it is in.
        private final int owner;

        /// Drivers that count, by device.
        private final Map<Integer, Integer> users = new HashMap<>();

        /// The context, where no driver keeps it any more.
        private @Nullable CudaContext kept;

        Range(long bytes, int owner) {
            this.bytes = bytes;
            this.owner = owner;
        }
    }

    /// Does a call; what the driver has against it is noted, as nothing can be done about it.
    @FunctionalInterface
    interface Noting {

        /// Answers whether the driver did it.
        boolean done(String call, IntSupplier made);
    }

    private Registrations() {}

    static Registrations ofProcess() {
        return OF_PROCESS;
    }

    /// Registers memory, or counts one more for whom it is. Answers as the driver does.
    synchronized int add(MemorySegment host, CudaContext context) {
        Range known = byStart.get(host.address());
        if (known == null || known.bytes != host.byteSize()) {
            int result = JCudaDriver.cuMemHostRegister(new HostPointer(host), host.byteSize(), PORTABLE);
            if (result != CudaResult.SUCCESS) {
                return result;
            }
            known = new Range(host.byteSize(), context.ordinal());
            byStart.put(host.address(), known);
        }
        known.users.merge(context.ordinal(), 1, Integer::sum);
        return CudaResult.SUCCESS;
    }

    /// Counts one less, and unregisters when that was the last.
    ///
    /// @param context current in the calling thread
    /// @return whether it still is: the way back from another device's may be refused
    synchronized boolean remove(long start, CudaContext context, Noting noting) {
        Range known = byStart.get(start);
        if (known == null) {
            unregister(start, noting);
            return true;
        }
        known.users.computeIfPresent(context.ordinal(), (_, users) -> users == 1 ? null : users - 1);
        if (known.users.isEmpty()) {
            byStart.remove(start);
            return end(start, known, context, noting);
        }
        if (known.owner == context.ordinal() && !known.users.containsKey(known.owner) && known.kept == null) {
            known.kept = noting.done("cuDevicePrimaryCtxRetain", context::retain) ? context : null;
        }
        return true;
    }

    /// In the context that it was made in, where that is still there.
    private static boolean end(long start, Range range, CudaContext context, Noting noting) {
        CudaContext kept = range.kept;
        boolean current = true;
        if (range.owner == context.ordinal()) {
            unregister(start, noting);
        } else if (kept != null) {
            if (noting.done("cuCtxSetCurrent", kept::makeCurrent)) {
                unregister(start, noting);
            }
            current = noting.done("cuCtxSetCurrent", context::makeCurrent);
        }
        if (kept != null && !noting.done("cuDevicePrimaryCtxRelease", kept::release)) {
            noting.done("cuDevicePrimaryCtxRelease", kept::release); // once more: else it stays for good
        }
        return current;
    }

    private static void unregister(long start, Noting noting) {
        noting.done("cuMemHostUnregister", () -> JCudaDriver.cuMemHostUnregister(new HostPointer(start)));
    }
}
