package io.kvcache.transport.ucx;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.EnumMap;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// libucp, loaded at its first use and never unloaded.
///
/// By default UCX takes over fault signals, which a JVM needs for itself, and patches functions that map memory.
/// Environment variables, set before it is loaded, prevent that. Variables that are set already keep their values.
///
/// **Threads.** Any, as far as the called functions allow it.
final class UcpLibrary {

    static final int OK = 0;
    static final int IN_PROGRESS = 1;

    private static final String LIBRARY = "libucp.so.0";

    /// UCX settings, by environment variable.
    private static final Map<String, String> ENVIRONMENT = Map.of(
            "UCX_HANDLE_ERRORS", "none",
            "UCX_ERROR_SIGNALS", "",
            "UCX_MEM_EVENTS", "n",
            "UCX_WARN_UNUSED_ENV_VARS", "n",
            "UCX_LOG_LEVEL", "fatal");

    private final Map<UcpFunction, MethodHandle> calls;

    private UcpLibrary(Map<UcpFunction, MethodHandle> calls) {
        this.calls = calls;
    }

    private static final class Loaded {

        static final Object UCP = load();

        private Loaded() {}

        /// Returns the library, or the error text if it cannot be loaded.
        @SuppressWarnings("restricted")
        private static Object load() {
            try {
                Linker linker = Linker.nativeLinker();
                prepare(linker);
                SymbolLookup library = SymbolLookup.libraryLookup(LIBRARY, Arena.global());
                Map<UcpFunction, MethodHandle> calls = new EnumMap<>(UcpFunction.class);
                for (UcpFunction call : UcpFunction.values()) {
                    calls.put(call, linker.downcallHandle(library.findOrThrow(call.symbol()), call.descriptor()));
                }
                return new UcpLibrary(calls);
            } catch (IllegalArgumentException | NoSuchElementException | UnsupportedOperationException absent) {
                return String.valueOf(absent.getMessage());
            }
        }

        @SuppressWarnings("restricted")
        private static void prepare(Linker linker) {
            MethodHandle setenv = linker.downcallHandle(
                    linker.defaultLookup().findOrThrow("setenv"),
                    FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT));
            try (Arena arena = Arena.ofConfined()) {
                ENVIRONMENT.forEach((name, value) ->
                        UcpLibrary.invoke(setenv, arena.allocateFrom(name), arena.allocateFrom(value), 0));
            }
        }
    }

    /// @throws IOException when the library is missing, or is not what it should be
    static UcpLibrary load() throws IOException {
        if (Loaded.UCP instanceof UcpLibrary there) {
            return there;
        }
        throw new IOException("UCX is not installed (" + Loaded.UCP + "); on Debian it is the package libucx0");
    }

    /// Calls a function that returns a status.
    int status(UcpFunction call, Object... arguments) {
        return status((int) Objects.requireNonNull(invoke(handle(call), arguments)));
    }

    /// Returns a status as UCX means it: the low byte, as the others are undefined.
    static int status(int returned) {
        return (byte) returned;
    }

    /// Calls a function, and throws unless its status is OK.
    void require(UcpFunction call, Object... arguments) throws IOException {
        int status = status(call, arguments);
        if (status != OK) {
            throw new IOException(call.symbol() + " fails with UCX's status " + status);
        }
    }

    /// Calls a function that returns a request.
    long request(UcpFunction call, Object... arguments) {
        return (long) Objects.requireNonNull(invoke(handle(call), arguments));
    }

    /// Calls a function that returns nothing.
    void call(UcpFunction call, Object... arguments) {
        invoke(handle(call), arguments);
    }

    /// Returns a handle for frequent calls by `invokeExact`.
    MethodHandle handle(UcpFunction call) {
        return Objects.requireNonNull(calls.get(call));
    }

    private static @Nullable Object invoke(MethodHandle function, Object... arguments) {
        try {
            return function.invokeWithArguments(arguments);
        } catch (Throwable bug) {
            throw unexpected(bug);
        }
    }

    /// Foreign functions throw nothing.
    static AssertionError unexpected(Throwable thrown) {
        return new AssertionError("a foreign function throws", thrown);
    }

    /// Returns whether a request is an address; else it is a status.
    static boolean isPending(long request) {
        return request > 0;
    }

    /// Returns a pointer that a function has stored.
    static MemorySegment pointer(MemorySegment out) {
        return out.get(ADDRESS, 0);
    }

    /// The functions of libucp that are called, with their signatures on 64-bit Linux. A request is declared to be
    /// a number, not a pointer: small negative ones are failures then, as every other status is.
    @SuppressWarnings("ImmutableEnumChecker") // Function descriptors are immutable, though not annotated so.
    enum UcpFunction {
        CONFIG_READ(JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
        CONFIG_MODIFY(JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
        CONFIG_RELEASE(null, ADDRESS),
        INIT_VERSION(JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
        CLEANUP(null, ADDRESS),
        WORKER_CREATE(JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
        WORKER_DESTROY(null, ADDRESS),
        WORKER_GET_ADDRESS(JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
        WORKER_RELEASE_ADDRESS(null, ADDRESS, ADDRESS),
        WORKER_PROGRESS(JAVA_INT, ADDRESS),
        WORKER_WAIT(JAVA_INT, ADDRESS),
        WORKER_SIGNAL(JAVA_INT, ADDRESS),
        MEM_MAP(JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
        MEM_UNMAP(JAVA_INT, ADDRESS, ADDRESS),
        RKEY_PACK(JAVA_INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS),
        RKEY_BUFFER_RELEASE(null, ADDRESS),
        EP_CREATE(JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
        EP_RKEY_UNPACK(JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
        RKEY_DESTROY(null, ADDRESS),
        EP_CLOSE_NBX(JAVA_LONG, ADDRESS, ADDRESS),
        GET_NBX(JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS),
        REQUEST_CHECK_STATUS(JAVA_INT, JAVA_LONG),
        REQUEST_FREE(null, JAVA_LONG);

        private final FunctionDescriptor descriptor;

        UcpFunction(@Nullable MemoryLayout result, MemoryLayout... arguments) {
            descriptor =
                    result == null ? FunctionDescriptor.ofVoid(arguments) : FunctionDescriptor.of(result, arguments);
        }

        String symbol() {
            return "ucp_" + name().toLowerCase(java.util.Locale.ROOT);
        }

        FunctionDescriptor descriptor() {
            return descriptor;
        }
    }
}
