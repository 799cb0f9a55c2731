package io.kvcache.gpu.cuda;

import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jcuda.driver.JCudaDriver;

/// Host memory as it is registered with the primary context of a device: once, by the first driver of this
/// process that asks, until the last has let go of it. Drivers of one device share the context, and several
/// are usual: a tier has one for each of its parts, and a door one for each engine, all for the memory of
/// the same store.
///
/// A driver counts for as long as it is open at most, and keeps the context so long; so nothing is counted
/// that went with the context.
///
/// **Threads.** Any. Who registers what another is registering waits for that.
final class Registrations {

    private static final Map<Integer, Registrations> OF_DEVICES = new ConcurrentHashMap<>();

    private final Map<Long, Range> byStart = new HashMap<>();

    private record Range(long bytes, int users) {}

    private Registrations() {}

    static Registrations of(int ordinal) {
        return OF_DEVICES.computeIfAbsent(ordinal, _ -> new Registrations());
    }

    /// Registers memory, or counts one more for whom it is. Answers as the driver does.
    synchronized int add(MemorySegment host) {
        Range known = byStart.get(host.address());
        if (known != null && known.bytes == host.byteSize()) {
            byStart.put(host.address(), new Range(known.bytes, known.users + 1));
            return CudaResult.SUCCESS;
        }
        int result = JCudaDriver.cuMemHostRegister(new HostPointer(host), host.byteSize(), 0);
        if (result == CudaResult.SUCCESS) {
            byStart.put(host.address(), new Range(host.byteSize(), 1));
        }
        return result;
    }

    /// Counts one less.
    ///
    /// @param unregister called when that was the last
    synchronized void remove(long start, Runnable unregister) {
        Range known = byStart.get(start);
        if (known == null || known.users == 1) {
            byStart.remove(start);
            unregister.run();
        } else {
            byStart.put(start, new Range(known.bytes, known.users - 1));
        }
    }
}
