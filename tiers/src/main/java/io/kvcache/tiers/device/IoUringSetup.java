package io.kvcache.tiers.device;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.LibcFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// The kernel's answer to `io_uring_setup`: a ring and where its parts lie, or a refusal.
///
/// Asked for first: one thread only that submits, and completions brought in only when it enters the kernel
/// (both Linux 6.1), which saves interrupting it; disabled until that thread is known. Older kernels get no
/// flags. Those before 5.13 do not register buffers while the doorbell's read is on its way, and those before
/// 5.11 cannot wait with a timeout either; they count as a refusal.
///
/// @param result the descriptor of the ring, or a negated errno
/// @param parameters struct io_uring_params, as the kernel filled it in
record IoUringSetup(long result, MemorySegment parameters) {

    private static final long IO_URING_SETUP = 425;

    private static final int SETUP_R_DISABLED = 1 << 6;
    private static final int SETUP_TASKRUN_FLAG = 1 << 9;
    private static final int SETUP_SINGLE_ISSUER = 1 << 12;
    private static final int SETUP_DEFER_TASKRUN = 1 << 13;

    /// IORING_FEAT_EXT_ARG | IORING_FEAT_RSRC_TAGS
    private static final int FEATURES_NEEDED = 1 << 8 | 1 << 10;

    // struct io_uring_params, then struct io_sqring_offsets at 40 and struct io_cqring_offsets at 80.
    private static final long PARAMETERS_BYTES = 120;
    private static final long SQ_ENTRIES = 0;
    private static final long CQ_ENTRIES = 4;
    private static final long FLAGS = 8;
    private static final long FEATURES = 20;
    private static final long SQ_TAIL = 44;
    private static final long SQ_FLAGS = 56;
    private static final long SQ_ARRAY = 64;
    private static final long CQ_HEAD = 80;
    private static final long CQ_TAIL = 84;
    private static final long CQ_CQES = 100;

    /// Asks for a ring with room for `entries` requests.
    static IoUringSetup request(Libc libc, int entries) {
        int best = SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN | SETUP_TASKRUN_FLAG | SETUP_R_DISABLED;
        IoUringSetup modern = request(libc, entries, best);
        IoUringSetup setup = Errno.EINVAL.isResult(modern.result) ? request(libc, entries, 0) : modern;
        if (setup.result >= 0 && (setup.parameter(FEATURES) & FEATURES_NEEDED) != FEATURES_NEEDED) {
            libc.call(LibcFunction.CLOSE, (int) setup.result);
            return new IoUringSetup(-Errno.ENOSYS.number(), setup.parameters);
        }
        return setup;
    }

    private static IoUringSetup request(Libc libc, long entries, int flags) {
        MemorySegment parameters = Arena.ofAuto().allocate(PARAMETERS_BYTES, Long.BYTES);
        parameters.set(JAVA_INT, FLAGS, flags);
        long result = libc.call(LibcFunction.SYSCALL, IO_URING_SETUP, entries, parameters.address(), 0L, 0L, 0L, 0L);
        return new IoUringSetup(result, parameters);
    }

    boolean isAccepted() {
        return result >= 0;
    }

    /// Why it was refused, and what would help.
    String refusal() {
        String advice = Errno.EPERM.isResult(result)
                ? "a container profile (seccomp) or kernel.io_uring_disabled forbids it"
                : "";
        String cause = Errno.ENOSYS.isResult(result) ? "it needs Linux 5.13 and a profile that allows it" : advice;
        return cause.isEmpty() ? Errno.explain(result) : "%s: %s".formatted(Errno.nameOf(result), cause);
    }

    int descriptor() {
        return (int) result;
    }

    /// Whether the ring waits for its thread to enable it.
    boolean isDisabled() {
        return (parameter(FLAGS) & SETUP_R_DISABLED) != 0;
    }

    int submissions() {
        return parameter(SQ_ENTRIES);
    }

    int completions() {
        return parameter(CQ_ENTRIES);
    }

    int submissionTail() {
        return parameter(SQ_TAIL);
    }

    int submissionFlags() {
        return parameter(SQ_FLAGS);
    }

    int submissionArray() {
        return parameter(SQ_ARRAY);
    }

    int completionHead() {
        return parameter(CQ_HEAD);
    }

    int completionTail() {
        return parameter(CQ_TAIL);
    }

    int completionEntries() {
        return parameter(CQ_CQES);
    }

    private int parameter(long offset) {
        return parameters.get(JAVA_INT, offset);
    }
}
