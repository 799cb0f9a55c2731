package io.kvcache.tiers.os;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.util.List;

/// The C functions that this module calls, with their signatures on 64-bit Linux.
///
/// `mmap` is declared to return a number, not a pointer: MAP_FAILED is −1 then, as every other failure is. `pread`
/// and `pwrite` take the address as a number, so that memory of any arena can be used by any thread; that it stays
/// there meanwhile is their caller's affair.
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
