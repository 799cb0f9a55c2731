package io.kvcache.gpu.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// The functions of the driver's library that are called without JCuda, by the names that they have there:
/// with their suffix, as the name without one is often an older function of other arguments.
///
/// All answer with an int. Handles and addresses are numbers, as in the driver's own header.
final class CudaFunctions {

    private final SymbolLookup library;
    private final Map<String, FunctionDescriptor> bound = new TreeMap<>();

    CudaFunctions(SymbolLookup library) {
        this.library = library;
    }

    /// A function that every driver has since long.
    ///
    /// @throws DeviceException with [DeviceError#NO_DRIVER] when this one has it not
    MethodHandle bind(String name, MemoryLayout... arguments) {
        MethodHandle call = bindIfPresent(name, arguments);
        if (call == null) {
            throw new DeviceException(DeviceError.NO_DRIVER, name, "the driver has no such function");
        }
        return call;
    }

    /// A function that only some drivers have.
    ///
    /// @return null when this one has it not
    @SuppressWarnings("restricted") // Signatures as in cuda.h, which a test compares.
    @Nullable
    MethodHandle bindIfPresent(String name, MemoryLayout... arguments) {
        MemorySegment function = library.find(name).orElse(null);
        if (function == null) {
            return null;
        }
        FunctionDescriptor descriptor = FunctionDescriptor.of(JAVA_INT, arguments);
        bound.put(name, descriptor);
        return Linker.nativeLinker().downcallHandle(function, descriptor);
    }

    /// What was bound by now, and how it is called.
    Map<String, FunctionDescriptor> bound() {
        return Map.copyOf(bound);
    }
}
