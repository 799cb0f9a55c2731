package io.kvcache.gpu.cuda;

import static io.kvcache.gpu.cuda.CudaLibrary.invoke;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.gpu.cuda.CudaEvent.CudaEventHandle;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceIpc;
import io.kvcache.gpu.driver.DeviceSpan;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.util.HashMap;
import java.util.Map;

/// The driver's handles for other processes. JCuda has these calls, but keeps the 64 bytes of a handle to
/// itself.
final class CudaIpc implements DeviceIpc {

    /// A handle goes by value.
    private static final StructLayout HANDLE =
            MemoryLayout.structLayout(MemoryLayout.sequenceLayout(TOKEN_BYTES, JAVA_BYTE));

    private static final int PEER_ACCESS = 1;

    /// Between processes, and without a time.
    private static final int EVENT_FLAGS = 4 | 2;

    private final CudaDriver driver;
    private final MethodHandle exportMemory;
    private final MethodHandle openMemory;
    private final MethodHandle closeMemory;
    private final MethodHandle range;
    private final MethodHandle createEvent;
    private final MethodHandle exportEvent;
    private final MethodHandle openEvent;
    private final MethodHandle query;
    private final MethodHandle record;
    private final MethodHandle blockStream;
    private final MethodHandle destroy;

    /// How often each was opened: a second time the driver gives the same place.
    private final Map<DeviceSpan, Integer> opened = new HashMap<>();

    CudaIpc(CudaDriver driver, CudaLibrary library) {
        this.driver = driver;
        exportMemory = library.bind("cuIpcGetMemHandle", ADDRESS, JAVA_LONG);
        openMemory = library.bind("cuIpcOpenMemHandle_v2", ADDRESS, HANDLE, JAVA_INT);
        closeMemory = library.bind("cuIpcCloseMemHandle", JAVA_LONG);
        range = library.bind("cuMemGetAddressRange_v2", ADDRESS, ADDRESS, JAVA_LONG);
        createEvent = library.bind("cuEventCreate", ADDRESS, JAVA_INT);
        exportEvent = library.bind("cuIpcGetEventHandle", ADDRESS, JAVA_LONG);
        openEvent = library.bind("cuIpcOpenEventHandle", ADDRESS, HANDLE);
        query = library.bind("cuEventQuery", JAVA_LONG);
        record = library.bind("cuEventRecord", JAVA_LONG, JAVA_LONG);
        blockStream = library.bind("cuStreamWaitEvent", JAVA_LONG, JAVA_LONG, JAVA_INT);
        destroy = library.bind("cuEventDestroy_v2", JAVA_LONG);
    }

    private static MemorySegment handle(Arena arena, byte[] token) {
        if (token.length != TOKEN_BYTES) {
            throw new IllegalArgumentException("a token of " + token.length + " bytes; it takes " + TOKEN_BYTES);
        }
        return arena.allocate(HANDLE).copyFrom(MemorySegment.ofArray(token));
    }

    @Override
    public byte[] exportToken(DeviceSpan slab) {
        driver.enter();
        driver.allocations().requireSlab(slab);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment token = arena.allocate(HANDLE);
            driver.check("cuIpcGetMemHandle", invoke(() ->
                    (int) exportMemory.invokeExact(token, slab.address().value())));
            return token.toArray(JAVA_BYTE);
        }
    }

    @Override
    public DeviceSpan open(byte[] token) {
        driver.enter();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment told = handle(arena, token);
            MemorySegment at = arena.allocate(JAVA_LONG);
            driver.checkFallible(
                    "cuIpcOpenMemHandle", invoke(() -> (int) openMemory.invokeExact(at, told, PEER_ACCESS)));
            long address = at.get(JAVA_LONG, 0);
            DeviceSpan span = new DeviceSpan(new DeviceAddress(address), bytes(arena, address));
            if (opened.merge(span, 1, Integer::sum) == 1) {
                driver.allocations().adopt(span);
            }
            return span;
        }
    }

    /// How much there is behind an address, as the driver says and not the exporter. Drivers
    /// take small allocations out of larger blocks, so what they speak of may begin before it.
    private long bytes(Arena arena, long address) {
        MemorySegment base = arena.allocate(JAVA_LONG);
        MemorySegment size = arena.allocate(JAVA_LONG);
        int result = invoke(() -> (int) range.invokeExact(base, size, address));
        if (result != CudaResult.SUCCESS) {
            closeMemory(address);
        }
        driver.check("cuMemGetAddressRange", result);
        return base.get(JAVA_LONG, 0) + size.get(JAVA_LONG, 0) - address;
    }

    @Override
    public void close(DeviceSpan span) {
        driver.enter();
        if (opened.getOrDefault(span, 0) < 2) {
            driver.allocations().disown(span);
        }
        driver.drain();
        opened.computeIfPresent(span, (_, times) -> times == 1 ? null : times - 1);
        closeMemory(span.address().value());
    }

    /// How much memory was opened and not closed.
    int openCount() {
        return opened.values().stream().mapToInt(Integer::intValue).sum();
    }

    /// Closes what was not, when nothing is on its way any more.
    void releaseAll() {
        opened.forEach((span, times) -> {
            for (int i = 0; i < times; i++) {
                closeMemory(span.address().value());
            }
        });
        opened.clear();
    }

    private void closeMemory(long address) {
        driver.releaseQuietly("cuIpcCloseMemHandle", () -> invoke(() -> (int) closeMemory.invokeExact(address)));
    }

    @Override
    public DeviceEvent createSharedEvent() {
        driver.enter();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment event = arena.allocate(JAVA_LONG);
            driver.check("cuEventCreate", invoke(() -> (int) createEvent.invokeExact(event, EVENT_FLAGS)));
            return driver.addEvent(new CudaEventHandle.IpcEvent(this, event.get(JAVA_LONG, 0)));
        }
    }

    @Override
    public byte[] exportToken(DeviceEvent event) {
        driver.enter();
        long value = driver.requireOwned(event).handle().value();
        if (value == 0) {
            throw new DeviceException(DeviceError.BAD_REQUEST, "export", "an event that is not to be shared");
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment token = arena.allocate(HANDLE);
            driver.check("cuIpcGetEventHandle", invoke(() -> (int) exportEvent.invokeExact(token, value)));
            return token.toArray(JAVA_BYTE);
        }
    }

    @Override
    public DeviceEvent openEvent(byte[] token) {
        driver.enter();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment told = handle(arena, token);
            MemorySegment event = arena.allocate(JAVA_LONG);
            driver.checkFallible("cuIpcOpenEventHandle", invoke(() -> (int) openEvent.invokeExact(event, told)));
            return driver.addEvent(new CudaEventHandle.IpcEvent(this, event.get(JAVA_LONG, 0)));
        }
    }

    int query(long event) {
        return invoke(() -> (int) query.invokeExact(event));
    }

    int record(long event, long stream) {
        return invoke(() -> (int) record.invokeExact(event, stream));
    }

    int blockStream(long event, long stream) {
        return invoke(() -> (int) blockStream.invokeExact(stream, event, 0));
    }

    int destroy(long event) {
        return invoke(() -> (int) destroy.invokeExact(event));
    }
}
