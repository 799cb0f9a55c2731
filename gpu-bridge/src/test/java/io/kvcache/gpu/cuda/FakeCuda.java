package io.kvcache.gpu.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceUnderTest;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Set;

/// The stand-in for libcuda that runs on the CPU, loaded before anything looks for the real one, and its
/// levers.
///
/// With `-Dkvcache.gpu.real=true` the real driver is used in its place; tests that need the levers are
/// skipped then.
public final class FakeCuda implements DeviceUnderTest {

    private static final boolean REAL = Boolean.getBoolean("kvcache.gpu.real");
    private static final long MAX_NAME_BYTES = 128;
    private static final long DEFAULT_BYTES = 256L << 20;
    private static final FakeCuda LOADED = new FakeCuda();

    private final SymbolLookup functions;

    @SuppressWarnings("restricted") // Loading a library is what this is about.
    private FakeCuda() {
        if (REAL) {
            functions = _ -> Optional.empty();
            return;
        }
        Path library = FakeCudaBuild.library();
        System.load(library.toString());
        functions = SymbolLookup.libraryLookup(library, Arena.global());
    }

    /// The stand-in, as it is after start.
    public static FakeCuda reset() {
        if (!REAL) {
            LOADED.release();
            LOADED.call("standin_reset", FunctionDescriptor.ofVoid());
            LOADED.delay(0);
            LOADED.pageableWaits(false);
            LOADED.hostPointers(true);
            LOADED.memory(DEFAULT_BYTES);
            LOADED.devices(1);
        }
        return LOADED;
    }

    @Override
    public DeviceDriver open() {
        return CudaDriver.open(0);
    }

    /// Opens one of several.
    public DeviceDriver open(int ordinal) {
        return CudaDriver.open(ordinal);
    }

    /// Has two devices, or skips the test where there is only one.
    public FakeCuda withTwoDevices() {
        if (REAL) {
            assumeThat(thereIs(1)).as("two devices").isTrue();
        } else {
            devices(2);
        }
        return this;
    }

    private static boolean thereIs(int ordinal) {
        try {
            CudaDriver.open(ordinal).close();
            return true;
        } catch (DeviceException none) {
            return false;
        }
    }

    private void devices(int count) {
        call("standin_devices", ints(), count);
    }

    /// Opens it as a driver that lacks some functions.
    public DeviceDriver openWithout(Set<String> names) {
        SymbolLookup all = CudaLibrary.load();
        return CudaDriver.open(name -> names.contains(name) ? Optional.empty() : all.find(name), 0);
    }

    /// Where it lies, or the real driver's library, for processes that are no JVM.
    public Path library() {
        return REAL ? Path.of("libcuda.so.1") : FakeCudaBuild.library();
    }

    @Override
    public boolean canHold() {
        return !REAL;
    }

    @Override
    public void hold() {
        call("standin_hold", ints(), 1);
    }

    /// From now on no kernel is run, while copies are made.
    public void holdLaunches() {
        call("standin_hold_launches", ints(), 1);
    }

    @Override
    public void release() {
        if (!REAL) {
            call("standin_hold", ints(), 0);
            call("standin_hold_launches", ints(), 0);
        }
    }

    /// Has all work begin so much later.
    public void delay(int micros) {
        call("standin_delay", ints(), micros);
    }

    /// Whether calls for copies of memory that is not registered return only when the copy is made.
    public void pageableWaits(boolean wait) {
        call("standin_pageable_waits", ints(), wait ? 1 : 0);
    }

    /// Whether the device knows registered memory by the CPU's addresses: batches with such fail otherwise.
    public void hostPointers(boolean taken) {
        call("standin_host_pointers", ints(), taken ? 1 : 0);
    }

    /// Has the device so much memory; 256 MiB when nothing is said.
    public void memory(long bytes) {
        call("standin_total", FunctionDescriptor.ofVoid(JAVA_LONG), bytes);
    }

    /// Calls of the driver's that so many scattered pieces take.
    public static long batches(long pieces) {
        return Math.ceilDiv(pieces, CudaStream.MAX_BATCH);
    }

    /// How often a function was called.
    public long calls(String function) {
        try (Arena arena = Arena.ofConfined()) {
            return number(
                    call("standin_calls", FunctionDescriptor.of(JAVA_LONG, ADDRESS), arena.allocateFrom(function)));
        }
    }

    /// How often any function was.
    public long calls() {
        return number(call("standin_all_calls", FunctionDescriptor.of(JAVA_LONG)));
    }

    /// Returns how many bytes copies from host memory to a device were asked for; those of kernels do not count.
    public long bytesToDevice() {
        return number(call("standin_bytes_to_device", FunctionDescriptor.of(JAVA_LONG)));
    }

    /// The same of copies to host memory.
    public long bytesToHost() {
        return number(call("standin_bytes_to_host", FunctionDescriptor.of(JAVA_LONG)));
    }

    /// How many faults there were.
    public long injected() {
        return number(call("standin_injected", FunctionDescriptor.of(JAVA_LONG)));
    }

    /// The function whose call was made to fail last.
    public String injectedAt() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = arena.allocate(MAX_NAME_BYTES);
            call("standin_injected_at", FunctionDescriptor.ofVoid(ADDRESS, JAVA_LONG), name, MAX_NAME_BYTES);
            return name.getString(0);
        }
    }

    /// Has the n-th call of a function from now on fail; of any function, when the name is empty;
    /// none any more, when it is 0.
    public void failCall(String function, long nth, int code) {
        try (Arena arena = Arena.ofConfined()) {
            call(
                    "standin_fail",
                    FunctionDescriptor.ofVoid(ADDRESS, JAVA_LONG, JAVA_INT),
                    arena.allocateFrom(function),
                    nth,
                    code);
        }
    }

    /// Has the next two calls of a function fail.
    public void failTwice(String function, int code) {
        failCall(function, 1, code);
        call("standin_fail_again", FunctionDescriptor.ofVoid(JAVA_LONG), 1L);
    }

    /// Has the n-th piece of work from now on fail when a stream gets there.
    public void failWork(long nth, int code) {
        call("standin_fail_work", FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_INT), nth, code);
    }

    /// Loses the device, with this answer to everything.
    public void loseDevice(int code) {
        call("standin_lose", ints(), code);
    }

    @Override
    public String left() {
        if (REAL) {
            return "";
        }
        long live = resourceCount();
        long retained = number(call("standin_retained", FunctionDescriptor.of(JAVA_LONG)));
        return live + retained == 0 ? "" : live + " things and " + retained + " contexts";
    }

    /// How much there is in the context: allocations, registrations, streams, events, mappings and
    /// so on.
    public long resourceCount() {
        return number(call("standin_live", FunctionDescriptor.of(JAVA_LONG)));
    }

    private static FunctionDescriptor ints() {
        return FunctionDescriptor.ofVoid(JAVA_INT);
    }

    private static long number(Object returned) {
        return ((Number) returned).longValue();
    }

    @SuppressWarnings("restricted") // Signatures as in the stand-in's sources.
    private Object call(String name, FunctionDescriptor descriptor, Object... arguments) {
        MethodHandle handle =
                Linker.nativeLinker().downcallHandle(functions.find(name).orElseThrow(), descriptor);
        try {
            Object returned = handle.invokeWithArguments(arguments);
            return returned == null ? 0 : returned;
        } catch (Throwable impossible) {
            throw new AssertionError(name, impossible);
        }
    }
}
