package io.kvcache.server.doctor;

import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.lang.foreign.Arena;

/// Asks the kernel for a small io_uring, and gives it back.
final class IoUringProbe {

    private static final long IO_URING_SETUP = 425;

    /// struct io_uring_params
    private static final long PARAMETERS_BYTES = 120;

    private IoUringProbe() {}

    static CheckResult check() {
        Libc libc = Libc.system();
        try (Arena arena = Arena.ofConfined()) {
            long parameters = arena.allocate(PARAMETERS_BYTES, Long.BYTES).address();
            long result = libc.call(LibcFunction.SYSCALL, IO_URING_SETUP, 1L, parameters, 0L, 0L, 0L, 0L);
            if (result >= 0) {
                libc.call(LibcFunction.CLOSE, (int) result);
                return CheckResult.of("io_uring", "allowed");
            }
            return check(result);
        }
    }

    /// @param result a negated errno
    static CheckResult check(long result) {
        String advice;
        if (Errno.EPERM.isResult(result)) {
            advice =
                    "sysctl -w kernel.io_uring_disabled=0, or a seccomp profile for the container that lets io_uring in";
        } else if (Errno.ENOMEM.isResult(result)) {
            advice = "raise ulimit -l: it has no memory to pin";
        } else {
            advice = "run Linux 6.1 or later, in a container with a seccomp profile that lets io_uring in";
        }
        return new CheckResult("io_uring", "refused, " + Errno.nameOf(result) + ": disks go through threads", advice);
    }
}
