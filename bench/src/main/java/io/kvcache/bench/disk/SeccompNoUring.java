package io.kvcache.bench.disk;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Has the kernel deny io_uring to the calling thread and to those that it starts, for good, as the seccomp
/// profile of a container does to a process.
final class SeccompNoUring {

    // Instructions of classic BPF over struct seccomp_data, whose first field is the number of the call.
    private static final int LOAD_WORD = 0x20;
    private static final int IF_EQUAL = 0x15;
    private static final int RETURN = 0x06;
    private static final int EPERM = 0x0005_0001;
    private static final int ALLOW = 0x7fff_0000;
    private static final int IO_URING_SETUP = 425;

    /// Code, jump if true, jump if false, operand.
    private static final int[][] FILTER = {
        {LOAD_WORD, 0, 0, 0}, {IF_EQUAL, 0, 1, IO_URING_SETUP}, {RETURN, 0, 0, EPERM}, {RETURN, 0, 0, ALLOW}
    };

    private static final int INSTRUCTION_BYTES = 8;

    /// struct sock_fprog: a count of 16 bits, and a pointer.
    private static final int PROGRAM_BYTES = 16;

    private static final long PRCTL = System.getProperty("os.arch").equals("aarch64") ? 167 : 157;
    private static final long PR_SET_NO_NEW_PRIVS = 38;
    private static final long PR_SET_SECCOMP = 22;
    private static final long SECCOMP_MODE_FILTER = 2;

    private SeccompNoUring() {}

    /// Answers false where the kernel does not let us, and nothing has changed.
    static boolean denyForThread() {
        Libc libc = Libc.system();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment program = arena.allocate(PROGRAM_BYTES, Long.BYTES);
            program.set(JAVA_SHORT, 0, (short) FILTER.length);
            program.set(JAVA_LONG, Long.BYTES, code(arena).address());
            return prctl(libc, PR_SET_NO_NEW_PRIVS, 1, 0) == 0
                    && prctl(libc, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program.address()) == 0;
        }
    }

    private static MemorySegment code(Arena arena) {
        MemorySegment code = arena.allocate((long) INSTRUCTION_BYTES * FILTER.length, Long.BYTES);
        for (int i = 0; i < FILTER.length; i++) {
            long at = (long) i * INSTRUCTION_BYTES;
            code.set(JAVA_SHORT, at, (short) FILTER[i][0]);
            code.set(JAVA_BYTE, at + 2, (byte) FILTER[i][1]);
            code.set(JAVA_BYTE, at + 3, (byte) FILTER[i][2]);
            code.set(JAVA_INT, at + 4, FILTER[i][3]);
        }
        return code;
    }

    private static long prctl(Libc libc, long option, long second, long third) {
        return libc.call(LibcFunction.SYSCALL, PRCTL, option, second, third, 0L, 0L, 0L);
    }
}
