package io.kvcache.tiers.device;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;

/// An io_uring: two queues in memory that is shared with the kernel, and the calls around them.
///
/// **Threads.** One submits and reaps, see [IoBackend].
final class IoUring {

    // Each queue has a producer that moves its tail and a consumer that moves its head; both only grow, and
    // the place of an entry is its number modulo the size. We produce submissions: an entry is filled in, then
    // the tail is released. We consume completions: the tail is acquired, entries are read, then the head is
    // released. The submission head need not be looked at, because the kernel consumes only within `enter`,
    // and there are never more requests, the doorbell's among them, than entries. Nor can completions overflow:
    // their queue is twice as
    // long. The array of the submission queue, an indirection without a use here, holds each number at its own
    // place for good.

    /// Answer of [#peekCompletion] when there is no completion.
    static final long NONE = -1;

    static final int REGISTER_BUFFERS = 0;
    static final int UNREGISTER_BUFFERS = 1;
    static final int REGISTER_FILES = 2;
    static final int UNREGISTER_FILES = 3;
    private static final int REGISTER_ENABLE_RINGS = 12;

    private static final long IO_URING_ENTER = 426;
    private static final long IO_URING_REGISTER = 427;
    private static final long ENTER_GETEVENTS = 1;
    private static final long ENTER_EXT_ARG = 1 << 3;

    /// IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN: the kernel has completions that it brings in when entered.
    private static final int ENTER_TO_COLLECT = 6;

    private static final int PROT_READ_WRITE = 3;
    private static final int MAP_SHARED_POPULATE = 0x8001;
    private static final long SUBMISSION_QUEUE_OFFSET = 0;
    private static final long SUBMISSION_ENTRIES_OFFSET = 0x1000_0000;
    private static final int SUBMISSION_BYTES = 64;
    private static final int COMPLETION_BYTES = 16;

    /// struct io_uring_getevents_arg (sigmask, its size, padding, address of the timeout) and struct timespec.
    private static final long WAIT_BYTES = 24;
    private static final long WAIT_TIMEOUT = 16;
    private static final long TIMEOUT_BYTES = 16;
    private static final long NANOS_PER_SECOND = 1_000_000_000;

    private static final VarHandle INT = JAVA_INT.varHandle();

    private final Libc libc;
    private final IoUringSetup setup;
    private final MethodHandle syscall;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment queues;
    private final MemorySegment submissions;
    private final MemorySegment errno;
    private final MemorySegment wait;
    private final MemorySegment timeout;
    private int tail;
    private int pending;

    /// @param setup accepted; closed when its memory cannot be mapped
    IoUring(Libc libc, IoUringSetup setup) throws IOException {
        this.libc = libc;
        this.setup = setup;
        this.syscall = libc.handle(LibcFunction.SYSCALL);
        long submissionEnd = setup.submissionArray() + (long) setup.submissions() * Integer.BYTES;
        long completionEnd = setup.completionEntries() + (long) setup.completions() * COMPLETION_BYTES;
        try {
            this.queues = map(Math.max(submissionEnd, completionEnd), SUBMISSION_QUEUE_OFFSET);
            this.submissions = map((long) setup.submissions() * SUBMISSION_BYTES, SUBMISSION_ENTRIES_OFFSET);
        } catch (IOException failure) {
            close();
            throw failure;
        }
        this.errno = arena.allocate(Linker.Option.captureStateLayout());
        this.wait = arena.allocate(WAIT_BYTES, Long.BYTES);
        this.timeout = arena.allocate(TIMEOUT_BYTES, Long.BYTES);
        wait.set(JAVA_LONG, WAIT_TIMEOUT, timeout.address());
        for (int entry = 0; entry < setup.submissions(); entry++) {
            queues.set(JAVA_INT, setup.submissionArray() + (long) entry * Integer.BYTES, entry);
        }
        this.tail = queues.get(JAVA_INT, setup.submissionTail());
    }

    private MemorySegment map(long bytes, long offset) throws IOException {
        long address = libc.call(
                LibcFunction.MMAP,
                MemorySegment.NULL,
                bytes,
                PROT_READ_WRITE,
                MAP_SHARED_POPULATE,
                setup.descriptor(),
                offset);
        if (address < 0) {
            throw new IOException("Cannot map a ring of io_uring: " + Errno.explain(address));
        }
        return toSegment(address, bytes);
    }

    /// The length is the one that mmap has just mapped at this address.
    @SuppressWarnings("restricted") // Giving a mapping its length and its end of life; nothing else here can.
    private MemorySegment toSegment(long address, long bytes) {
        return MemorySegment.ofAddress(address)
                .reinterpret(bytes, arena, mapping -> libc.call(LibcFunction.MUNMAP, mapping, mapping.byteSize()));
    }

    /// Makes the calling thread the one that submits, if the kernel wants to know.
    void enableForCurrentThread() {
        if (setup.isDisabled()) {
            long result = register(REGISTER_ENABLE_RINGS, MemorySegment.NULL, 0);
            if (result < 0) {
                throw new IllegalStateException("enabling io_uring gave " + Errno.explain(result));
            }
        }
    }

    /// Calls `io_uring_register`.
    ///
    /// @return at least 0, or a negated errno
    long register(int operation, MemorySegment argument, int count) {
        return libc.call(
                LibcFunction.SYSCALL,
                IO_URING_REGISTER,
                (long) setup.descriptor(),
                (long) operation,
                argument.address(),
                (long) count,
                0L,
                0L);
    }

    /// The next submission, all zeroes, to fill in before the ring is entered.
    MemorySegment nextSubmission() {
        long at = (long) (tail & setup.submissions() - 1) * SUBMISSION_BYTES;
        tail++;
        pending++;
        return submissions.asSlice(at, SUBMISSION_BYTES).fill((byte) 0);
    }

    /// Returns whether entering would submit or bring in anything.
    boolean needsEnter() {
        return pending > 0 || ((int) INT.getAcquire(queues, (long) setup.submissionFlags()) & ENTER_TO_COLLECT) != 0;
    }

    /// Submits what was claimed, brings in completions, and waits for one.
    ///
    /// Entries that the kernel does not take now, for want of memory, stay for the next time.
    ///
    /// @param timeoutNanos the longest wait; 0 not to wait
    void enter(long timeoutNanos) {
        INT.setRelease(queues, (long) setup.submissionTail(), tail);
        long result = timeoutNanos > 0 ? enterWaiting(timeoutNanos) : enter(0, ENTER_GETEVENTS, MemorySegment.NULL);
        if (result >= 0) {
            pending -= (int) result;
        } else if (!Errno.ETIME.isResult(result)
                && !Errno.EINTR.isResult(result)
                && !Errno.EAGAIN.isResult(result)
                && !Errno.EBUSY.isResult(result)) {
            throw new IllegalStateException("io_uring_enter gave " + Errno.explain(result));
        }
    }

    private long enterWaiting(long timeoutNanos) {
        timeout.set(JAVA_LONG, 0, timeoutNanos / NANOS_PER_SECOND);
        timeout.set(JAVA_LONG, Long.BYTES, timeoutNanos % NANOS_PER_SECOND);
        return enter(1, ENTER_GETEVENTS | ENTER_EXT_ARG, wait);
    }

    private long enter(long minimum, long flags, MemorySegment argument) {
        long descriptor = setup.descriptor();
        long size = argument.byteSize();
        try {
            long result = (long) syscall.invokeExact(
                    errno, IO_URING_ENTER, descriptor, (long) pending, minimum, flags, argument.address(), size);
            return Libc.result(errno, result);
        } catch (Throwable impossible) {
            throw new AssertionError("a C function threw", impossible);
        }
    }

    /// Returns the address of the oldest completion, or [#NONE]. It stays the oldest until [#consumeCompletion].
    long peekCompletion() {
        int head = queues.get(JAVA_INT, setup.completionHead());
        if (head == (int) INT.getAcquire(queues, (long) setup.completionTail())) {
            return NONE;
        }
        return setup.completionEntries() + (long) (head & setup.completions() - 1) * COMPLETION_BYTES;
    }

    /// The number that the submission was given.
    long userData(long completion) {
        return queues.get(JAVA_LONG, completion);
    }

    int result(long completion) {
        return queues.get(JAVA_INT, completion + Long.BYTES);
    }

    /// Gives the place of the oldest completion back to the kernel.
    void consumeCompletion() {
        int head = queues.get(JAVA_INT, setup.completionHead());
        INT.setRelease(queues, (long) setup.completionHead(), head + 1);
    }

    void close() {
        libc.call(LibcFunction.CLOSE, setup.descriptor());
        arena.close();
    }

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
            long result =
                    libc.call(LibcFunction.SYSCALL, IO_URING_SETUP, entries, parameters.address(), 0L, 0L, 0L, 0L);
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

        /// Returns whether the ring waits for its thread to enable it.
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
}
