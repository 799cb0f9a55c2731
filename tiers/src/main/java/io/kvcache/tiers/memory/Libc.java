package io.kvcache.tiers.memory;

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
/// Calls are bound by reflection-like `invokeWithArguments`: a microsecond each, and none is on a hot path.
final class Libc {

    private static final VarHandle ERRNO =
            Linker.Option.captureStateLayout().varHandle(PathElement.groupElement("errno"));

    private final Map<Call, MethodHandle> handles;

    private Libc(Map<Call, MethodHandle> handles) {
        this.handles = handles;
    }

    /// The calls of the running system. The numbers in this package are those of Linux, so elsewhere there are
    /// none.
    static Libc ofThisMachine() {
        boolean linux = System.getProperty("os.name").toLowerCase(Locale.ROOT).startsWith("linux");
        return linux ? bind(Linker.nativeLinker().defaultLookup()) : none();
    }

    static Libc none() {
        return new Libc(Map.of());
    }

    /// @throws IllegalStateException when the JVM was told to refuse native access; names the flag that allows it
    static Libc bind(SymbolLookup lookup) {
        Map<Call, MethodHandle> handles = new EnumMap<>(Call.class);
        for (Call call : Call.values()) {
            Optional<MemorySegment> address = lookup.find(call.symbol());
            address.ifPresent(found -> handles.put(call, handle(call, found)));
        }
        return new Libc(handles);
    }

    @SuppressWarnings("restricted") // Binding C functions is what this class is for; signatures are in Call.
    private static MethodHandle handle(Call call, MemorySegment address) {
        try {
            return Linker.nativeLinker().downcallHandle(address, call.descriptor(), call.options());
        } catch (IllegalCallerException refused) {
            throw new IllegalStateException(
                    "This JVM refuses native access, which KVCache needs to map memory. "
                            + "Start it with --enable-native-access=ALL-UNNAMED",
                    refused);
        }
    }

    boolean has(Call call) {
        return handles.containsKey(call);
    }

    /// Calls, and returns what the function returned or, where that is −1, the negated errno, as the kernel does.
    long call(Call call, Object... arguments) {
        MethodHandle handle = handles.get(call);
        if (handle == null) {
            return -Errno.ENOSYS.number();
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(Linker.Option.captureStateLayout());
            List<Object> all =
                    Stream.concat(Stream.of(state), Stream.of(arguments)).toList();
            long result = ((Number) handle.invokeWithArguments(all)).longValue();
            return result == -1 ? -(int) ERRNO.get(state, 0L) : result;
        } catch (RuntimeException | Error thrown) {
            throw thrown;
        } catch (Throwable impossible) {
            throw new AssertionError("a C function threw a checked exception", impossible);
        }
    }

    /// Like [#call] with a C string before the other arguments.
    long callWithText(Call call, String text, Object... arguments) {
        try (Arena arena = Arena.ofConfined()) {
            Stream<Object> all = Stream.concat(Stream.of(arena.allocateFrom(text)), Stream.of(arguments));
            return call(call, all.toArray());
        }
    }
}
