package io.kvcache.gpu.cuda;

import static io.kvcache.gpu.cuda.CudaLibrary.invoke;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.driver.VirtualMemory.PhysicalPages;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.HashSet;
import java.util.Set;
import java.util.function.ObjIntConsumer;

/// The driver's virtual memory. JCuda reads the place of memory and of access from the wrong objects, so
/// all of it goes to the driver directly.
final class CudaVmm implements VirtualMemory {

    /// CUmemAllocationProp: type, handle types, location (type, device), a pointer, and eight bytes of
    /// flags.
    private static final MemoryLayout PROPERTIES = MemoryLayout.sequenceLayout(4, JAVA_LONG);

    /// CUmemAccessDesc: location (type, device) and flags.
    private static final MemoryLayout ACCESS = MemoryLayout.sequenceLayout(3, JAVA_INT);

    private static final int ALLOCATION_PINNED = 1;
    private static final int HANDLE_FILE_DESCRIPTOR = 1;
    private static final int LOCATION_DEVICE = 1;
    private static final int READ_WRITE = 3;

    private final CudaDriver driver;
    private final MethodHandle reserve;
    private final MethodHandle unreserve;
    private final MethodHandle create;
    private final MethodHandle release;
    private final MethodHandle map;
    private final MethodHandle access;
    private final MethodHandle unmap;
    private final MethodHandle export;
    private final MethodHandle open;
    private final MemorySegment properties = Arena.ofAuto().allocate(PROPERTIES);
    private final MemorySegment shared = Arena.ofAuto().allocate(PROPERTIES);
    private final MemorySegment readWrite = Arena.ofAuto().allocate(ACCESS);
    private final Set<DeviceSpan> ranges = new HashSet<>();
    private final Set<PhysicalPages> created = new HashSet<>();
    private final Set<DeviceSpan> mapped = new HashSet<>();
    private final long pageBytes;

    CudaVmm(CudaDriver driver, CudaLibrary library, int device) {
        this.driver = driver;
        reserve = library.bind("cuMemAddressReserve", ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
        unreserve = library.bind("cuMemAddressFree", JAVA_LONG, JAVA_LONG);
        create = library.bind("cuMemCreate", ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG);
        release = library.bind("cuMemRelease", JAVA_LONG);
        map = library.bind("cuMemMap", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
        access = library.bind("cuMemSetAccess", JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG);
        unmap = library.bind("cuMemUnmap", JAVA_LONG, JAVA_LONG);
        export = library.bind("cuMemExportToShareableHandle", ADDRESS, JAVA_LONG, JAVA_INT, JAVA_LONG);
        open = library.bind("cuMemImportFromShareableHandle", ADDRESS, JAVA_LONG, JAVA_INT);
        properties.set(JAVA_INT, 0, ALLOCATION_PINNED);
        properties.set(JAVA_INT, 8, LOCATION_DEVICE);
        properties.set(JAVA_INT, 12, device);
        shared.copyFrom(properties);
        shared.set(JAVA_INT, 4, HANDLE_FILE_DESCRIPTOR);
        readWrite.set(JAVA_INT, 0, LOCATION_DEVICE);
        readWrite.set(JAVA_INT, 4, device);
        readWrite.set(JAVA_INT, 8, READ_WRITE);
        pageBytes = granularity(library);
    }

    private long granularity(CudaLibrary library) {
        MethodHandle ask = library.bind("cuMemGetAllocationGranularity", ADDRESS, ADDRESS, JAVA_INT);
        return invokeForValue("cuMemGetAllocationGranularity", out -> (int) ask.invokeExact(out, properties, 0));
    }

    /// A call that leaves a number somewhere.
    private interface OutParameterCall {

        int call(MemorySegment out) throws Throwable;
    }

    private long invokeForValue(String name, OutParameterCall call) {
        return invokeForValue(name, driver::check, call);
    }

    private long invokeForValue(String name, ObjIntConsumer<String> checked, OutParameterCall call) {
        driver.enter();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_LONG);
            checked.accept(name, invoke(() -> call.call(out)));
            return out.get(JAVA_LONG, 0);
        }
    }

    @Override
    public long pageBytes() {
        return pageBytes;
    }

    @Override
    public DeviceSpan reserve(long bytes) {
        requirePages(bytes);
        long at = invokeForValue("cuMemAddressReserve", out -> (int) reserve.invokeExact(out, bytes, 0L, 0L, 0L));
        DeviceSpan range = new DeviceSpan(new DeviceAddress(at), bytes);
        ranges.add(range);
        return range;
    }

    private void requirePages(long bytes) {
        if (bytes < 1 || bytes % pageBytes != 0) {
            throw new IllegalArgumentException(bytes + " bytes of virtual memory; it takes multiples of " + pageBytes);
        }
    }

    @Override
    public void unreserve(DeviceSpan range) {
        driver.enter();
        ranges.remove(range);
        freeAddresses(range);
    }

    private void freeAddresses(DeviceSpan range) {
        driver.releaseQuietly(
                "cuMemAddressFree",
                () -> invoke(() -> (int) unreserve.invokeExact(range.address().value(), range.bytes())));
    }

    @Override
    public PhysicalPages create(long bytes) {
        return create(bytes, properties);
    }

    @Override
    public PhysicalPages createShared(long bytes) {
        return create(bytes, shared);
    }

    private PhysicalPages create(long bytes, MemorySegment wanted) {
        requirePages(bytes);
        return addPages(invokeForValue("cuMemCreate", out -> (int) create.invokeExact(out, bytes, wanted, 0L)), bytes);
    }

    private PhysicalPages addPages(long handle, long bytes) {
        PhysicalPages pages = new PhysicalPages(handle, bytes);
        created.add(pages);
        return pages;
    }

    @Override
    public int exportDescriptor(PhysicalPages pages) {
        return (int) invokeForValue("cuMemExportToShareableHandle", out ->
                (int) export.invokeExact(out, pages.handle(), HANDLE_FILE_DESCRIPTOR, 0L));
    }

    /// The descriptor goes where C has a pointer.
    @Override
    public PhysicalPages open(int descriptor, long bytes) {
        requirePages(bytes);
        long handle = invokeForValue("cuMemImportFromShareableHandle", driver::checkFallible, out ->
                (int) open.invokeExact(out, (long) descriptor, HANDLE_FILE_DESCRIPTOR));
        return addPages(handle, bytes);
    }

    @Override
    public void release(PhysicalPages pages) {
        driver.enter();
        created.remove(pages);
        free(pages);
    }

    private void free(PhysicalPages pages) {
        driver.releaseQuietly("cuMemRelease", () -> invoke(() -> (int) release.invokeExact(pages.handle())));
    }

    @Override
    public void map(DeviceAddress at, PhysicalPages pages) {
        driver.enter();
        long address = at.value();
        driver.check("cuMemMap", invoke(() -> (int) map.invokeExact(address, pages.bytes(), 0L, pages.handle(), 0L)));
        int allowed = invoke(() -> (int) access.invokeExact(address, pages.bytes(), readWrite, 1L));
        if (allowed != CudaResult.SUCCESS) {
            removeMapping(new DeviceSpan(at, pages.bytes()));
            if (allowed == CudaResult.INVALID_DEVICE) {
                // Pages of another device; this one is none the worse for it.
                throw new DeviceException(DeviceError.NOT_REACHABLE, "cuMemSetAccess", CudaResult.describe(allowed));
            }
            driver.check("cuMemSetAccess", allowed);
        }
        addMapping(new DeviceSpan(at, pages.bytes()));
    }

    private void addMapping(DeviceSpan span) {
        mapped.add(span);
        driver.allocations().addMapped(span);
    }

    @Override
    public void unmap(DeviceAddress at, PhysicalPages pages) {
        driver.enter();
        driver.drain(); // the driver itself does not wait, and the pages may be mapped elsewhere next
        DeviceSpan span = new DeviceSpan(at, pages.bytes());
        driver.allocations().disown(span);
        mapped.remove(span);
        removeMapping(span);
    }

    private void removeMapping(DeviceSpan span) {
        driver.releaseQuietly(
                "cuMemUnmap",
                () -> invoke(() -> (int) unmap.invokeExact(span.address().value(), span.bytes())));
    }

    /// Returns the number of ranges, mappings and memory pages that were not released.
    int resourceCount() {
        return ranges.size() + mapped.size() + created.size();
    }

    /// Gives back what was not, when nothing is on its way any more: the context takes none of it along
    /// while others in this process have that too.
    void releaseAll() {
        mapped.forEach(this::removeMapping);
        created.forEach(this::free);
        ranges.forEach(this::freeAddresses);
        mapped.clear();
        created.clear();
        ranges.clear();
    }
}
