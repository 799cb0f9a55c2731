package io.kvcache.tiers.device;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.opentest4j.TestAbortedException;

/// Runs code in a thread to which the kernel denies something, for good, as a container's seccomp profile
/// does. Threads that this one starts inherit it; the rest of the process is not affected.
enum SeccompSandbox {
    /// io_uring_setup ends with EPERM.
    NO_URING {
        @Override
        void enter(Arena arena) throws Throwable {
            filter(arena, new int[][] {{LOAD, 0, 0, CALL}, {IF_EQUAL, 0, 1, 425}, {RETURN, 0, 0, DENY | 1}, ALLOW});
        }
    },
    /// openat with O_DIRECT ends with EINVAL.
    NO_DIRECT_OPEN {
        @Override
        void enter(Arena arena) throws Throwable {
            int openat = ARM ? 56 : 257;
            int direct = ARM ? 0x10000 : 0x4000;
            filter(arena, new int[][] {
                {LOAD, 0, 0, CALL},
                {IF_EQUAL, 0, 3, openat},
                {LOAD, 0, 0, THIRD_ARGUMENT},
                {IF_ANY_BIT, 0, 1, direct},
                {RETURN, 0, 0, DENY | 22},
                ALLOW
            });
        }
    },
    /// pread ends with EINVAL.
    NO_POSITIONAL_READ {
        @Override
        void enter(Arena arena) throws Throwable {
            int pread = ARM ? 67 : 17;
            filter(arena, new int[][] {{LOAD, 0, 0, CALL}, {IF_EQUAL, 0, 1, pread}, {RETURN, 0, 0, DENY | 22}, ALLOW});
        }
    },
    /// fallocate ends with EOPNOTSUPP.
    NO_RESERVING {
        @Override
        void enter(Arena arena) throws Throwable {
            int fallocate = ARM ? 47 : 285;
            filter(arena, new int[][] {{LOAD, 0, 0, CALL}, {IF_EQUAL, 0, 1, fallocate}, {RETURN, 0, 0, DENY | 95}, ALLOW
            });
        }
    },
    /// RLIMIT_MEMLOCK applies, even to root.
    NO_LOCKED_MEMORY {
        @Override
        void enter(Arena arena) throws Throwable {
            FunctionDescriptor signature = FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS);
            MemorySegment header = arena.allocateFrom(JAVA_INT, CAPABILITY_VERSION_3, 0);
            MemorySegment sets = arena.allocate(24, 4);
            require("capget", (int) function("capget", signature).invokeExact(header, sets));
            sets.set(JAVA_INT, 0, sets.get(JAVA_INT, 0) & ~(1 << CAP_IPC_LOCK));
            require("capset", (int) function("capset", signature).invokeExact(header, sets));
        }
    };

    static final boolean ARM = System.getProperty("os.arch").equals("aarch64");

    // Instructions of classic BPF over struct seccomp_data.
    static final int LOAD = 0x20;
    static final int IF_EQUAL = 0x15;
    static final int IF_ANY_BIT = 0x45;
    static final int RETURN = 0x06;
    static final int CALL = 0;
    static final int THIRD_ARGUMENT = 32;
    static final int DENY = 0x0005_0000;
    static final int[] ALLOW = {RETURN, 0, 0, 0x7fff_0000};

    private static final int CAPABILITY_VERSION_3 = 0x20080522;
    private static final int CAP_IPC_LOCK = 14;
    private static final long PR_SET_NO_NEW_PRIVS = 38;
    private static final long PR_SET_SECCOMP = 22;
    private static final long SECCOMP_MODE_FILTER = 2;

    abstract void enter(Arena arena) throws Throwable;

    /// Runs the task in a new thread.
    ///
    /// @throws TestAbortedException where the kernel does not let us confine ourselves
    <T> T run(Callable<T> task) throws Exception {
        FutureTask<T> confined = new FutureTask<>(() -> {
            try (Arena arena = Arena.ofConfined()) {
                enter(arena);
            } catch (Throwable refused) {
                throw new TestAbortedException("cannot confine a thread here", refused);
            }
            return task.call();
        });
        Thread.ofPlatform().start(confined);
        try {
            return confined.get();
        } catch (ExecutionException failure) {
            if (failure.getCause() instanceof Exception cause) {
                throw cause;
            }
            throw failure;
        }
    }

    private static void filter(Arena arena, int[][] instructions) throws Throwable {
        MemorySegment code = arena.allocate(8L * instructions.length, 8);
        for (int i = 0; i < instructions.length; i++) {
            code.set(JAVA_SHORT, i * 8L, (short) instructions[i][0]);
            code.set(JAVA_BYTE, i * 8L + 2, (byte) instructions[i][1]);
            code.set(JAVA_BYTE, i * 8L + 3, (byte) instructions[i][2]);
            code.set(JAVA_INT, i * 8L + 4, instructions[i][3]);
        }
        MemorySegment program = arena.allocate(16, 8);
        program.set(JAVA_SHORT, 0, (short) instructions.length);
        program.set(JAVA_LONG, 8, code.address());
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0);
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program.address());
    }

    private static void prctl(long option, long second, long third) throws Throwable {
        FunctionDescriptor signature =
                FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
        require("prctl", (int) function("prctl", signature).invokeExact((int) option, second, third, 0L, 0L));
    }

    @SuppressWarnings("restricted") // Native calls with known signatures are what this double is.
    private static MethodHandle function(String name, FunctionDescriptor signature) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().find(name).orElseThrow(), signature);
    }

    private static void require(String call, int result) {
        if (result != 0) {
            throw new IllegalStateException(call + " is refused");
        }
    }
}
