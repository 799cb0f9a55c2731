import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;

/// Asks the kernel for a small io_uring and says what it answered:
/// java --enable-native-access=ALL-UNNAMED .mvn/UringProbe.java

static final long IO_URING_SETUP = 425;
static final long PARAMETERS_BYTES = 120;

void main() throws Throwable {
    Linker linker = Linker.nativeLinker();
    StructLayout stateLayout = Linker.Option.captureStateLayout();
    FunctionDescriptor signature = FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    var syscall = linker.downcallHandle(
            linker.defaultLookup().findOrThrow("syscall"),
            signature,
            Linker.Option.firstVariadicArg(1),
            Linker.Option.captureCallState("errno"));
    try (Arena arena = Arena.ofConfined()) {
        MemorySegment state = arena.allocate(stateLayout);
        long address = arena.allocate(PARAMETERS_BYTES, Long.BYTES).address();
        long descriptor = (long) syscall.invokeExact(state, IO_URING_SETUP, 1L, address);
        int errno = state.get(JAVA_INT, 0);
        IO.println(descriptor >= 0 ? "allowed" : "refused, %s: disks go through threads".formatted(reason(errno)));
    }
}

static String reason(int errno) {
    return switch (errno) {
        case 1 -> "EPERM (a container profile or kernel.io_uring_disabled)";
        case 12 -> "ENOMEM (ulimit -l)";
        case 38 -> "ENOSYS (an old kernel or a container profile)";
        default -> "errno " + errno;
    };
}
