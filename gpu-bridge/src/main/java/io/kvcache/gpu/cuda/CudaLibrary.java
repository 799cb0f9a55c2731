package io.kvcache.gpu.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/// The driver's library, and JCuda's over it, loaded once; and what of it is called without JCuda.
///
/// Functions have the names of the library, with their suffix: the name without one is often an older function of
/// other arguments. All answer with an int. Handles and addresses are numbers, as in the driver's own header.
final class CudaLibrary {

    private static final String NAME = "libcuda.so.1";

    /// Paths where containers have the driver's libraries outside the loader's search path.
    private static final List<Path> FALLBACK_PATHS =
            List.of(Path.of("/usr/local/nvidia/lib64", NAME), Path.of("/usr/lib/wsl/lib", NAME));

    private static final String TEMP_DIRECTORY = "java.io.tmpdir";

    private static @Nullable SymbolLookup loaded;

    private final SymbolLookup library;
    private final Map<String, FunctionDescriptor> bound = new TreeMap<>();

    CudaLibrary(SymbolLookup library) {
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

    Map<String, FunctionDescriptor> bound() {
        return Map.copyOf(bound);
    }

    /// A call of a bound function.
    interface NativeCall {

        int call() throws Throwable;
    }

    /// Calls, as C functions throw nothing.
    static int invoke(NativeCall call) {
        try {
            return call.call();
        } catch (Throwable thrown) {
            throw new AssertionError("a C function does not throw", thrown);
        }
    }

    /// The functions of the driver's library; JCuda can be used from then on.
    ///
    /// @throws DeviceException with [DeviceError#NO_DRIVER] when one of them cannot be loaded
    static synchronized SymbolLookup load() {
        if (loaded == null) {
            SymbolLookup driver = driver();
            loadJcuda();
            loaded = driver;
        }
        return loaded;
    }

    @SuppressWarnings("restricted") // Loading the driver is what this class is for.
    private static SymbolLookup driver() {
        try {
            return SymbolLookup.libraryLookup(NAME, Arena.global());
        } catch (IllegalArgumentException notWhereTheLoaderLooks) {
            for (Path place : FALLBACK_PATHS) {
                if (Files.isReadable(place)) {
                    System.load(place.toString()); // JCuda finds it by its name from then on
                    return SymbolLookup.libraryLookup(place, Arena.global());
                }
            }
            throw new DeviceException(DeviceError.NO_DRIVER, "load " + NAME, "not found");
        }
    }

    /// JCuda unpacks its library under a fixed name where temporary files lie, and takes what lies there
    /// already: in a folder that every user may write to, any user could have it run their code. So while
    /// it does, temporary files lie in a folder of this process alone, which goes once the library is
    /// loaded.
    private static void loadJcuda() {
        String usual = System.getProperty(TEMP_DIRECTORY);
        Path own = null;
        try {
            own = Files.createTempDirectory("kvcache-jcuda");
            System.setProperty(TEMP_DIRECTORY, own.toString());
            JCudaDriver.setExceptionsEnabled(false);
        } catch (IOException | LinkageError failed) {
            // JCuda's message is two stack traces, of which the second says what is wrong with what it unpacked.
            String reason =
                    String.valueOf(failed.getMessage()).replaceAll("(?s).*UnsatisfiedLinkError: (.*?)\n.*", "$1");
            throw new DeviceException(DeviceError.NO_DRIVER, "load JCuda", reason);
        } finally {
            System.setProperty(TEMP_DIRECTORY, usual);
            if (own != null) {
                remove(own);
            }
        }
    }

    private static void remove(Path folder) {
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
            Files.delete(folder);
        } catch (IOException left) {
            System.getLogger(CudaLibrary.class.getName())
                    .log(System.Logger.Level.WARNING, "left behind: " + folder, left);
        }
    }
}
