package io.kvcache.gpu.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.gpu.driver.DeviceKernel;
import io.kvcache.gpu.driver.KernelArguments;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.List;

/// Loading code and launching kernels, which through JCuda takes three microseconds a launch, and the
/// byte array pinned while the driver compiles.
final class CudaModules {

    private final MethodHandle load;
    private final MethodHandle unload;
    private final MethodHandle getFunction;
    private final MethodHandle launch;

    CudaModules(CudaFunctions functions) {
        load = functions.bind("cuModuleLoadData", ADDRESS, ADDRESS);
        unload = functions.bind("cuModuleUnload", JAVA_LONG);
        getFunction = functions.bind("cuModuleGetFunction", ADDRESS, JAVA_LONG, ADDRESS);
        launch = functions.bind(
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

    /// An answer of the driver, and what it gave.
    record ModuleResult(int result, long handle) {}

    /// @param code PTX
    ModuleResult load(String code) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = arena.allocate(JAVA_LONG);
            int result = (int) load.invokeExact(handle, arena.allocateFrom(code));
            return new ModuleResult(result, handle.get(JAVA_LONG, 0));
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    int unload(long module) {
        try {
            return (int) unload.invokeExact(module);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    ModuleResult findFunction(long module, String name) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = arena.allocate(JAVA_LONG);
            int result = (int) getFunction.invokeExact(handle, module, arena.allocateFrom(name));
            return new ModuleResult(result, handle.get(JAVA_LONG, 0));
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    int launch(DeviceKernel kernel, int groups, int threads, KernelArguments arguments, long stream) {
        List<KernelArguments.Value> values = arguments.values();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment storage = arena.allocate(JAVA_LONG, values.size());
            MemorySegment places = arena.allocate(ADDRESS, values.size());
            for (int i = 0; i < values.size(); i++) {
                storage.setAtIndex(JAVA_LONG, i, values.get(i).bits());
                places.setAtIndex(ADDRESS, i, storage.asSlice((long) i * Long.BYTES));
            }
            return (int) launch.invokeExact(
                    kernel.handle(), groups, 1, 1, threads, 1, 1, 0, stream, places, MemorySegment.NULL);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    private static AssertionError unexpected(Throwable thrown) {
        return new AssertionError("a C function does not throw", thrown);
    }
}
