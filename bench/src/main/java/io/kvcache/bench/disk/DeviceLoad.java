package io.kvcache.bench.disk;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.FileDevice;
import io.kvcache.tiers.device.FileDeviceOptions;
import io.kvcache.tiers.device.FileDeviceOptions.IoBackendType;
import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.stream.LongStream;

/// Reads or writes a file through our block device, eight requests deep, in a thread of its own, which then owns
/// the device.
///
/// @param fileBytes a multiple of `pieceBytes`
/// @param write regions from the front of the file to its end, again and again, as an offload writes; else reads
///     of random pieces, the same ones each time
/// @param pool where the bytes come from and go to
/// @param slots pieces of the pool that are used in turns, at least [#DEPTH]
record DeviceLoad(Path file, long fileBytes, boolean write, int pieceBytes, MemorySegment pool, long slots) {

    /// Requests on their way at a time: four keep a disk busy with pieces of this size, eight do surely.
    static final int DEPTH = 8;

    private static final long SEED = 42;

    /// A disk that lets nothing end for this long is broken.
    private static final long TIMEOUT_NANOS = 30_000_000_000L;

    /// The result of a load.
    ///
    /// @param path how the bytes travelled, in the words of the device
    record Result(double gigabytesPerSecond, String path) {}

    /// Moves so many bytes on the best path there is.
    ///
    /// @param bytes a multiple of `pieceBytes` for each request in the queue
    Result run(long bytes) throws IOException {
        return inThread(() -> run(bytes, IoBackendType.AUTO));
    }

    /// Moves them while the kernel denies io_uring; where it cannot be made to, without asking it.
    Result runWithoutUring(long bytes) throws IOException {
        return inThread(() -> run(bytes, SeccompNoUring.denyForThread() ? IoBackendType.AUTO : IoBackendType.THREADS));
    }

    private Result run(long bytes, IoBackendType engine) throws IOException {
        FileDeviceOptions options =
                FileDeviceOptions.of(file, fileBytes).withDepth(DEPTH).withEngine(engine);
        try (BlockDevice device = FileDevice.open(options)) {
            device.register(pool);
            long start = System.nanoTime();
            new Queue(device).move(bytes / pieceBytes);
            return new Result((double) bytes / (System.nanoTime() - start), device.describe());
        }
    }

    private static Result inThread(Callable<Result> task) throws IOException {
        FutureTask<Result> future = new FutureTask<>(task);
        Thread.ofPlatform().name("kvcache-disk").start(future);
        try {
            return future.get();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", stopped);
        } catch (ExecutionException failed) {
            if (failed.getCause() instanceof IOException cause) {
                throw cause;
            }
            throw new IllegalStateException("the device failed", failed.getCause());
        }
    }

    /// Keeps a device busy as the disk's thread does: fill the queue, wait, fill it again.
    private final class Queue {

        private final BlockDevice device;
        private final Deque<Long> freeSlots = new ArrayDeque<>();
        private final SplittableRandom random = new SplittableRandom(SEED);
        private IoOutcome outcome = IoOutcome.DONE;
        private long queued;

        Queue(BlockDevice device) {
            this.device = device;
            LongStream.range(0, slots).forEach(freeSlots::add);
        }

        void move(long pieces) throws IOException {
            while (queued < pieces) {
                while (queued < pieces && device.inFlight() < DEPTH) {
                    submit();
                }
                await();
            }
            while (device.inFlight() > 0) {
                await();
            }
        }

        private void submit() {
            long filePieces = fileBytes / pieceBytes;
            long offset = (write ? queued % filePieces : random.nextLong(filePieces)) * pieceBytes;
            long slot = freeSlots.remove();
            MemorySegment piece = pool.asSlice(slot * pieceBytes, pieceBytes);
            boolean taken = write ? device.write(piece, offset, slot) : device.read(piece, offset, slot);
            assert taken : "the queue is not deeper than the device's";
            queued++;
        }

        private void await() throws IOException {
            int delivered = device.await(this::onCompleted, TIMEOUT_NANOS);
            if (delivered == 0 || !outcome.isDone()) {
                throw new IOException(file + ": " + (delivered == 0 ? "nothing ends within 30 s" : outcome.cause()));
            }
        }

        private void onCompleted(long slot, IoOutcome reached) {
            freeSlots.add(slot);
            outcome = reached.isDone() ? outcome : reached;
        }
    }

    /// Has the kernel deny io_uring to the calling thread and to those that it starts, for good, as the
    /// seccomp profile of a container does to a process.
    private static final class SeccompNoUring {

        // Instructions of classic BPF over struct seccomp_data, whose first field is the number of the
        // call.
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
}
