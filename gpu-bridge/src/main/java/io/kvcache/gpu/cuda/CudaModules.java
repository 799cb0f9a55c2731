package io.kvcache.gpu.cuda;

import static io.kvcache.gpu.cuda.CudaLibrary.invoke;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.gpu.driver.DeviceProgram;
import io.kvcache.gpu.driver.DeviceProgram.DeviceKernel;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// Loads code and launches kernels. Through JCuda a launch takes three microseconds, and the byte array stays pinned
/// while the driver compiles.
final class CudaModules {

    private final CudaDriver driver;
    private final MethodHandle load;
    private final MethodHandle unload;
    private final MethodHandle getFunction;
    private final MethodHandle launch;
    private final Set<CudaProgram> programs = new HashSet<>();

    CudaModules(CudaDriver driver, CudaLibrary library) {
        this.driver = driver;
        load = library.bind("cuModuleLoadData", ADDRESS, ADDRESS);
        unload = library.bind("cuModuleUnload", JAVA_LONG);
        getFunction = library.bind("cuModuleGetFunction", ADDRESS, JAVA_LONG, ADDRESS);
        launch = library.bind(
                "cuLaunchKernel",
                JAVA_LONG,
                JAVA_INT,
                JAVA_INT,
                JAVA_INT,
                JAVA_INT,
                JAVA_INT,
                JAVA_INT,
                JAVA_INT,
                JAVA_LONG,
                ADDRESS,
                ADDRESS);
    }

    /// @param code PTX
    DeviceProgram load(String code) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = arena.allocate(JAVA_LONG);
            MemorySegment text = arena.allocateFrom(code);
            driver.check("cuModuleLoadData", invoke(() -> (int) load.invokeExact(handle, text)));
            CudaProgram program = new CudaProgram(handle.get(JAVA_LONG, 0));
            programs.add(program);
            return program;
        }
    }

    /// Answers as the driver does.
    int launch(DeviceKernel kernel, int groups, int threads, long[] arguments, long stream) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment storage = arena.allocateFrom(JAVA_LONG, arguments);
            MemorySegment places = arena.allocate(ADDRESS, arguments.length);
            for (int i = 0; i < arguments.length; i++) {
                places.setAtIndex(ADDRESS, i, storage.asSlice((long) i * Long.BYTES));
            }
            return (int) launch.invokeExact(
                    kernel.handle(), groups, 1, 1, threads, 1, 1, 0, stream, places, MemorySegment.NULL);
        } catch (Throwable thrown) {
            throw new AssertionError("a C function does not throw", thrown);
        }
    }

    /// Programs that are loaded.
    int count() {
        return programs.size();
    }

    void closeAll() {
        List.copyOf(programs).forEach(CudaProgram::close);
    }

    /// A module of the driver's.
    private final class CudaProgram implements DeviceProgram {

        private final long handle;
        private boolean closed;

        CudaProgram(long handle) {
            this.handle = handle;
        }

        @Override
        public DeviceKernel kernel(String name) {
            driver.enter();
            if (closed) {
                throw new IllegalStateException("the program is closed");
            }
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment function = arena.allocate(JAVA_LONG);
                MemorySegment text = arena.allocateFrom(name);
                driver.check("cuModuleGetFunction " + name, invoke(() ->
                        (int) getFunction.invokeExact(function, handle, text)));
                return new DeviceKernel(name, function.get(JAVA_LONG, 0));
            }
        }

        @Override
        public void close() {
            if (!closed) {
                closed = true;
                programs.remove(this);
                driver.releaseQuietly("cuModuleUnload", () -> invoke(() -> (int) unload.invokeExact(handle)));
            }
        }
    }
}
