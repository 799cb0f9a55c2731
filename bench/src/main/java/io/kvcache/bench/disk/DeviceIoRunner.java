package io.kvcache.bench.disk;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.kvcache.bench.disk.DiskRun.AccessPattern;
import io.kvcache.bench.disk.DiskRun.IoWorkload;
import io.kvcache.bench.disk.DiskRun.TransferResult;
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
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.stream.LongStream;

/// Runs workloads through our block device, each in a thread of its own, which then owns it.
///
/// @param pool where the bytes come from and go to; large enough for the deepest queue of the largest
///     pieces
/// @param buffers whether each request of the queue has one buffer, else all of the pool is used in turns
record DeviceIoRunner(MemorySegment pool, boolean buffers) {

    /// On the best path there is.
    TransferResult run(IoWorkload work) throws IOException {
        return inThread(() -> run(work, IoBackendType.AUTO));
    }

    /// While the kernel denies io_uring; where it cannot be made to, without asking it.
    TransferResult runWithoutUring(IoWorkload work) throws IOException {
        return inThread(() -> run(work, SeccompNoUring.denyForThread() ? IoBackendType.AUTO : IoBackendType.THREADS));
    }

    private TransferResult run(IoWorkload work, IoBackendType engine) throws IOException {
        FileDeviceOptions options = FileDeviceOptions.of(work.file(), work.fileBytes())
                .withDepth(work.depth())
                .withEngine(engine);
        try (BlockDevice device = FileDevice.open(options)) {
            device.register(pool);
            return DeviceLoadGenerator.run(
                    work, device, pool, buffers ? work.depth() : pool.byteSize() / work.pieceBytes());
        }
    }

    private static TransferResult inThread(Callable<TransferResult> task) throws IOException {
        FutureTask<TransferResult> future = new FutureTask<>(task);
        Thread.ofPlatform().name(ThreadCpuTimes.LOAD_THREAD).start(future);
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

    /// Keeps a block device busy with a workload, as the disk's thread does: fill the queue, wait, fill
    /// it again.
    private static final class DeviceLoadGenerator {

        /// A disk that lets nothing end for this long is broken.
        private static final long TIMEOUT_NANOS = 30_000_000_000L;

        private final IoWorkload work;
        private final BlockDevice device;
        private final MemorySegment pool;
        private final AccessPattern.OffsetSequence offsetSequence;
        private final QueueDepthMeter meter;
        private final Deque<Long> freeSlots = new ArrayDeque<>();
        private IoOutcome outcome = IoOutcome.DONE;
        private long queued;

        private DeviceLoadGenerator(
                IoWorkload work, BlockDevice device, MemorySegment pool, long slots, long nowNanos) {
            this.work = work;
            this.device = device;
            this.pool = pool;
            this.offsetSequence = work.pattern().offsets(work.fileBytes() / work.pieceBytes());
            this.meter = new QueueDepthMeter(nowNanos);
            LongStream.range(0, slots).forEach(freeSlots::add);
        }

        /// Moves it all, in the calling thread, named [ThreadCpuTimes#LOAD_THREAD].
        ///
        /// @param slots pieces of the pool that are used in turns, at least as many as the queue is deep
        /// @throws IOException when the device could not
        static TransferResult run(IoWorkload work, BlockDevice device, MemorySegment pool, long slots)
                throws IOException {
            ThreadCpuTimes before = ThreadCpuTimes.atStart();
            long start = System.nanoTime();
            DeviceLoadGenerator load = new DeviceLoadGenerator(work, device, pool, slots, start);
            double inFlight = load.moveAll();
            double seconds = (System.nanoTime() - start) / 1e9;
            double cpuSeconds = ThreadCpuTimes.atEnd().secondsSince(before);
            return new TransferResult(work.totalBytes(), seconds, cpuSeconds, inFlight, device.describe());
        }

        /// @return requests on their way on average, until there was nothing more to queue
        private double moveAll() throws IOException {
            while (queued < work.pieces()) {
                fillQueue();
                await();
            }
            double inFlight = meter.averageDepth(System.nanoTime());
            while (device.inFlight() > 0) {
                await();
            }
            return inFlight;
        }

        private void fillQueue() {
            while (queued < work.pieces() && device.inFlight() < work.depth()) {
                long slot = freeSlots.remove();
                MemorySegment piece = pool.asSlice(slot * work.pieceBytes(), work.pieceBytes());
                long offset = offsetSequence.next() * work.pieceBytes();
                boolean taken =
                        work.pattern().isWrite() ? device.write(piece, offset, slot) : device.read(piece, offset, slot);
                assert taken : "the queue is not deeper than the device's";
                meter.onQueued(System.nanoTime());
                queued++;
            }
        }

        private void await() throws IOException {
            int delivered = device.await(this::onCompleted, TIMEOUT_NANOS);
            if (delivered == 0 || !outcome.isDone()) {
                throw new IOException(
                        "%s: %s".formatted(work.file(), delivered == 0 ? "nothing ends within 30 s" : outcome.cause()));
            }
        }

        private void onCompleted(long slot, IoOutcome reached) {
            meter.onCompleted(System.nanoTime());
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

    /// How many requests are on their way on average, weighted by time.
    ///
    /// A request counts from when it was queued until its completion was delivered.
    static final class QueueDepthMeter {

        private final long startNanos;
        private long lastNanos;
        private long requestNanos;
        private int inFlight;

        QueueDepthMeter(long nowNanos) {
            startNanos = nowNanos;
            lastNanos = nowNanos;
        }

        void onQueued(long nowNanos) {
            advance(nowNanos);
            inFlight++;
        }

        void onCompleted(long nowNanos) {
            advance(nowNanos);
            inFlight--;
        }

        private void advance(long nowNanos) {
            requestNanos += (nowNanos - lastNanos) * inFlight;
            lastNanos = nowNanos;
        }

        /// Since the start, up to now.
        double averageDepth(long nowNanos) {
            advance(nowNanos);
            return nowNanos == startNanos ? 0 : (double) requestNanos / (nowNanos - startNanos);
        }
    }

    /// The CPU time of the I/O threads so far, user and system, as the scheduler counts it.
    ///
    /// These are the one that runs a [DeviceIoRunner.DeviceLoadGenerator], the threads of a device
    /// without io_uring, and the kernel's workers for io_uring, which are threads of the process too. fio
    /// reports its own thread only, so the comparison is in fio's favour.
    ///
    /// @param nanos by thread
    record ThreadCpuTimes(Map<String, Long> nanos) {

        /// Name of the thread that runs a load, as the kernel knows it: at most 15 letters. The threads of a
        /// store's disks append a number and do not count: stores wait for their next trial meanwhile.
        static final String LOAD_THREAD = "kvcache-disk";

        private static final String DEVICE_WORKER = "kvcache-io-";
        private static final String KERNEL_WORKER = "iou-wrk";
        private static final Path TASKS = Path.of("/proc/self/task");
        private static final Path SELF = Path.of("/proc/thread-self");

        /// At the start of what is measured: the calling thread is read last, as reading costs it
        /// something.
        static ThreadCpuTimes atStart() throws IOException {
            Map<String, Long> nanos = new HashMap<>();
            addAll(nanos);
            add(SELF.toRealPath(), nanos);
            return new ThreadCpuTimes(nanos);
        }

        /// At the end of it: the calling thread is read first.
        static ThreadCpuTimes atEnd() throws IOException {
            Map<String, Long> own = new HashMap<>();
            add(SELF.toRealPath(), own);
            Map<String, Long> nanos = new HashMap<>();
            addAll(nanos);
            nanos.putAll(own);
            return new ThreadCpuTimes(nanos);
        }

        private static void addAll(Map<String, Long> nanos) throws IOException {
            try (DirectoryStream<Path> tasks = Files.newDirectoryStream(TASKS)) {
                for (Path task : tasks) {
                    add(task, nanos);
                }
            }
        }

        private static void add(Path task, Map<String, Long> nanos) throws IOException {
            try {
                String name = Files.readString(task.resolve("comm")).strip();
                if (name.equals(LOAD_THREAD) || name.startsWith(DEVICE_WORKER) || name.startsWith(KERNEL_WORKER)) {
                    String times = Files.readString(task.resolve("schedstat"));
                    nanos.put(task.getFileName().toString(), Long.valueOf(times.substring(0, times.indexOf(' '))));
                }
            } catch (NoSuchFileException ended) {
                // It has ended meanwhile.
            }
        }

        /// Returns the time added since then, without threads that have ended.
        double secondsSince(ThreadCpuTimes then) {
            long sum = 0;
            for (Map.Entry<String, Long> thread : nanos.entrySet()) {
                sum += thread.getValue() - then.nanos.getOrDefault(thread.getKey(), 0L);
            }
            return sum / 1e9;
        }
    }
}
