package io.kvcache.tiers.os;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.tiers.os.Libc.LibcFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The calls of the C library that this machine has.
///
/// A call that is missing answers like a kernel that does not know it: −ENOSYS. So there is one way to fail, and a
/// platform without any of them (everything but Linux) is an empty instance.
///
/// [#call] goes through reflection-like `invokeWithArguments`, a microsecond each; frequent callers take the
/// [#handle].
///
/// **Threads.** Any, at the same time.
public final class Libc {

    private static final VarHandle ERRNO =
            Linker.Option.captureStateLayout().varHandle(PathElement.groupElement("errno"));

    private final Map<LibcFunction, MemorySegment> addresses;

    /// Made at the first use of each: most programs use some, and each takes a millisecond or more.
    private final Map<LibcFunction, MethodHandle> handles = new ConcurrentHashMap<>();

    private Libc(Map<LibcFunction, MemorySegment> addresses) {
        this.addresses = addresses;
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
        Map<LibcFunction, MemorySegment> addresses = new EnumMap<>(LibcFunction.class);
        for (LibcFunction libcFunction : LibcFunction.values()) {
            lookup.find(libcFunction.symbol()).ifPresent(found -> addresses.put(libcFunction, found));
        }
        Libc libc = new Libc(addresses);
        addresses.keySet().stream().findFirst().ifPresent(libc::handleOrNull); // refused now, not at some later call
        return libc;
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

    private @Nullable MethodHandle handleOrNull(LibcFunction libcFunction) {
        MethodHandle made = handles.get(libcFunction);
        if (made != null) {
            return made;
        }
        MemorySegment address = addresses.get(libcFunction);
        return address == null ? null : handles.computeIfAbsent(libcFunction, each -> downcall(each, address));
    }

    /// Returns whether this machine has the function.
    public boolean supports(LibcFunction libcFunction) {
        return addresses.containsKey(libcFunction);
    }

    /// Calls, and returns what the function returned or, where that is −1, the negated errno, as the kernel does.
    public long call(LibcFunction libcFunction, Object... arguments) {
        MethodHandle handle = handleOrNull(libcFunction);
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
        MethodHandle handle = handleOrNull(libcFunction);
        if (handle == null) {
            throw new IllegalStateException("This platform has no " + libcFunction.symbol());
        }
        return handle;
    }

    /// Returns the value of [#call] for a function that returned `returned` and left its errno in `state`.
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

    /// The C functions that this module calls, with their signatures on 64-bit Linux.
    ///
    /// `mmap` is declared to return a number, not a pointer: MAP_FAILED is −1 then, as every other failure is.
    /// `pread` and `pwrite` take the address as a number, so that memory of any arena can be used by any thread;
    /// that it stays there meanwhile is their caller's affair.
    @SuppressWarnings("ImmutableEnumChecker") // Function descriptors are immutable, though not annotated so.
    public enum LibcFunction {
        MMAP("mmap", 6, JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG),
        MUNMAP("munmap", 2, JAVA_INT, ADDRESS, JAVA_LONG),
        MADVISE("madvise", 3, JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT),
        MEMFD_CREATE("memfd_create", 2, JAVA_INT, ADDRESS, JAVA_INT),
        FTRUNCATE("ftruncate", 2, JAVA_INT, JAVA_INT, JAVA_LONG),
        FCNTL("fcntl", 2, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT),
        OPEN("open", 2, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT),
        FALLOCATE("fallocate", 4, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG),
        FDATASYNC("fdatasync", 1, JAVA_INT, JAVA_INT),
        LSEEK("lseek", 3, JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_INT),
        PREAD("pread", 4, JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG),
        PWRITE("pwrite", 4, JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG),
        SYSCALL("syscall", 1, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG),
        EVENTFD("eventfd", 2, JAVA_INT, JAVA_INT, JAVA_INT),
        EVENTFD_WRITE("eventfd_write", 2, JAVA_INT, JAVA_INT, JAVA_LONG),
        EXECV("execv", 2, JAVA_INT, ADDRESS, ADDRESS),
        GETEUID("geteuid", 0, JAVA_INT),
        SETPRIORITY("setpriority", 3, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT),
        CLOSE("close", 1, JAVA_INT, JAVA_INT);

        private final String symbol;
        private final int fixedArguments;
        private final FunctionDescriptor descriptor;

        /// @param fixedArguments how many arguments come before C's `...`; all of them where there is none
        LibcFunction(String symbol, int fixedArguments, MemoryLayout result, MemoryLayout... arguments) {
            this.symbol = symbol;
            this.fixedArguments = fixedArguments;
            this.descriptor = FunctionDescriptor.of(result, arguments);
        }

        String symbol() {
            return symbol;
        }

        FunctionDescriptor descriptor() {
            return descriptor;
        }

        Linker.Option[] options() {
            Linker.Option errno = Linker.Option.captureCallState("errno");
            boolean variadic = fixedArguments < descriptor.argumentLayouts().size();
            return (variadic ? List.of(errno, Linker.Option.firstVariadicArg(fixedArguments)) : List.of(errno))
                    .toArray(Linker.Option[]::new);
        }
    }

    /// Outcome of reserving space for a file.
    ///
    /// @param reservedBytes how far it got, from the start of the file
    /// @param result 0 when all is reserved, otherwise the negated errno of the call that failed
    public record FallocateResult(long reservedBytes, long result) {

        /// A signal makes fallocate give all back, so it goes in steps (of some 20 ms) that each get done.
        private static final long STEP_BYTES = 64L << 20;

        private static final int MAX_INTERRUPTIONS = 100;

        /// Reserves the first `bytes` of a file, so that running out of space is an error now, and not later a
        /// write that fails or a signal that kills.
        ///
        /// @param mode of fallocate: 0, or FALLOC_FL_KEEP_SIZE (1)
        public static FallocateResult reserve(Libc libc, int descriptor, int mode, long bytes) {
            long reserved = 0;
            while (reserved < bytes) {
                FallocateResult step = reserveStep(libc, descriptor, mode, reserved, bytes);
                if (step.result < 0) {
                    return step;
                }
                reserved = step.reservedBytes;
            }
            return new FallocateResult(reserved, 0);
        }

        /// Reserves the next step of the first `bytes` of a file of which the first `reserved` are.
        ///
        /// @param mode of fallocate, as [#reserve]'s
        public static FallocateResult reserveStep(Libc libc, int descriptor, int mode, long reserved, long bytes) {
            long step = Math.min(STEP_BYTES, bytes - reserved);
            long result;
            int interruptions = 0;
            do {
                result = libc.call(LibcFunction.FALLOCATE, descriptor, mode, reserved, step);
            } while (Errno.EINTR.isResult(result) && ++interruptions <= MAX_INTERRUPTIONS);
            return result == 0 ? new FallocateResult(reserved + step, 0) : new FallocateResult(reserved, result);
        }
    }
}
