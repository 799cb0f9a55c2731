package io.kvcache.tiers.os;

import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/// The calls of the C library that this machine has.
///
/// A call that is missing answers like a kernel that does not know it: −ENOSYS. So there is one way to fail, and a
/// platform without any of them (everything but Linux) is an empty instance.
///
/// [#call] goes through reflection-like `invokeWithArguments`, a microsecond each; who calls often takes the
/// [#handle].
///
/// **Threads.** Any, at the same time.
public final class Libc {

    private static final VarHandle ERRNO =
            Linker.Option.captureStateLayout().varHandle(PathElement.groupElement("errno"));

    private final Map<LibcFunction, MethodHandle> handles;

    private Libc(Map<LibcFunction, MethodHandle> handles) {
        this.handles = handles;
    }

    /// The calls of the running system. The numbers in this package are those of Linux, so elsewhere there are
    /// none.
    public static Libc system() {
        boolean linux = System.getProperty("os.name").toLowerCase(Locale.ROOT).startsWith("linux");
        return linux ? bind(Linker.nativeLinker().defaultLookup()) : unavailable();
    }

    /// A machine without any of the calls.
    public static Libc unavailable() {
        return new Libc(Map.of());
    }

    /// The calls that the lookup finds.
    ///
    /// @throws IllegalStateException when the JVM was told to refuse native access; names the flag that allows it
    public static Libc bind(SymbolLookup lookup) {
        Map<LibcFunction, MethodHandle> handles = new EnumMap<>(LibcFunction.class);
        for (LibcFunction libcFunction : LibcFunction.values()) {
            Optional<MemorySegment> address = lookup.find(libcFunction.symbol());
            address.ifPresent(found -> handles.put(libcFunction, downcall(libcFunction, found)));
        }
        return new Libc(handles);
    }

    @SuppressWarnings("restricted") // Binding C functions is what this class is for; signatures are in Call.
    private static MethodHandle downcall(LibcFunction libcFunction, MemorySegment address) {
        try {
            return Linker.nativeLinker().downcallHandle(address, libcFunction.descriptor(), libcFunction.options());
        } catch (IllegalCallerException refused) {
            throw new IllegalStateException(
                    "This JVM refuses native access, which KVCache needs to map memory and to read disks. "
                            + "Start it with --enable-native-access=ALL-UNNAMED",
                    refused);
        }
    }

    /// Whether this machine has the call.
    public boolean supports(LibcFunction libcFunction) {
        return handles.containsKey(libcFunction);
    }

    /// Calls, and returns what the function returned or, where that is −1, the negated errno, as the kernel does.
    public long call(LibcFunction libcFunction, Object... arguments) {
        MethodHandle handle = handles.get(libcFunction);
        if (handle == null) {
            return -Errno.ENOSYS.number();
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(Linker.Option.captureStateLayout());
            List<Object> all =
                    Stream.concat(Stream.of(state), Stream.of(arguments)).toList();
            long result = ((Number) handle.invokeWithArguments(all)).longValue();
            return result(state, result);
        } catch (RuntimeException | Error thrown) {
            throw thrown;
        } catch (Throwable impossible) {
            throw new AssertionError("a C function threw a checked exception", impossible);
        }
    }

    /// The function itself, for `invokeExact`: first a segment of [Linker.Option#captureStateLayout], then the
    /// arguments of the [LibcFunction]; what it returned goes through [#result].
    ///
    /// @throws IllegalStateException when the machine does not have it
    public MethodHandle handle(LibcFunction libcFunction) {
        MethodHandle handle = handles.get(libcFunction);
        if (handle == null) {
            throw new IllegalStateException("This platform has no " + libcFunction.symbol());
        }
        return handle;
    }

    /// What [#call] would return for a function that returned `returned` and left its errno in `state`.
    public static long result(MemorySegment state, long returned) {
        return returned == -1 ? -(int) ERRNO.get(state, 0L) : returned;
    }

    /// Like [#call] with a C string before the other arguments.
    public long callWithString(LibcFunction libcFunction, String text, Object... arguments) {
        try (Arena arena = Arena.ofConfined()) {
            Stream<Object> all = Stream.concat(Stream.of(arena.allocateFrom(text)), Stream.of(arguments));
            return call(libcFunction, all.toArray());
        }
    }
}
