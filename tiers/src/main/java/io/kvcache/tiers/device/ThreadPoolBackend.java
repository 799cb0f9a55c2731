package io.kvcache.tiers.device;

import io.kvcache.tiers.device.IoRequest.IoRequestPool;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Requests carried out by platform threads with positional reads and writes, one at a time each.
///
/// Used where io_uring is refused. The owner queues for all threads together and is unparked by the one that
/// ends a request while it waits; no thread spins, because the disk is what takes the time.
final class ThreadPoolBackend implements IoBackend {

    // The workers and the owner meet in two queues and in `waiting`. The owner announces itself in `waiting`
    // before it looks into `ended` for the last time; a worker adds to `ended` before it looks at `waiting`.
    // Both are volatile, so one of the two sees the other. So it is with the thread that wakes the owner, and
    // `woken`; a wake-up that comes too late for its wait ends the next, which is what `gather` may do. A worker
    // that leaves the owner asleep has seen work that was not taken yet; the thread that ends the last of it wakes
    // the owner.

    /// As many as keep a disk busy with large reads; more only wait for the same disk.
    static final int MAX_THREADS = 8;

    /// The owner is woken for this many results at once while there is more to do: each time takes a processor
    /// from a worker twice.
    private static final int WAKE_BATCH = 4;

    /// Ends the worker that takes it.
    private static final IoRequest STOP = new IoRequest(-1);

    private final DeviceFile file;
    private final IoRequestPool requests;
    private final String description;
    private final Queue<IoRequest> queued = new ArrayDeque<>();
    private final BlockingQueue<IoRequest> work = new LinkedBlockingQueue<>();
    private final Queue<IoRequest> ended = new ConcurrentLinkedQueue<>();
    private final Thread[] threads;
    private volatile @Nullable Thread waiting;
    private volatile boolean woken;

    ThreadPoolBackend(DeviceFile file, IoRequestPool requests) {
        this.file = file;
        this.requests = requests;
        int count = Math.min(requests.depth(), MAX_THREADS);
        this.description = "%s threads, %s".formatted(count, file.direct() ? "O_DIRECT" : "page cache");
        this.threads = IntStream.range(0, count)
                .mapToObj(number -> Thread.ofPlatform()
                        .daemon()
                        .name("kvcache-io-" + number)
                        .start(this::runWorker))
                .toArray(Thread[]::new);
    }

    @Override
    public IoRequestPool requests() {
        return requests;
    }

    @Override
    public void attachOwner() {}

    @Override
    public void enqueue(IoRequest request) {
        queued.add(request);
    }

    @Override
    public void submit() {
        work.addAll(queued);
        queued.clear();
    }

    @Override
    public void awaitCompletions(long timeoutNanos) {
        submit();
        if (timeoutNanos > 0 && ended.isEmpty()) {
            park(timeoutNanos);
        }
    }

    /// An interrupt is kept for the caller; it does not cut the wait short, as it does not with
    /// io_uring.
    private void park(long timeoutNanos) {
        boolean interrupted = false;
        long start = System.nanoTime();
        long left = timeoutNanos;
        waiting = Thread.currentThread();
        while (ended.isEmpty() && !woken && left > 0) {
            LockSupport.parkNanos(this, left);
            interrupted |= Thread.interrupted();
            left = timeoutNanos - (System.nanoTime() - start);
        }
        waiting = null;
        woken = false;
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void wake() {
        woken = true;
        LockSupport.unpark(waiting);
    }

    @Override
    public @Nullable IoRequest pollCompleted() {
        return ended.poll();
    }

    @Override
    public void register(MemorySegment pool) {}

    @Override
    public String describe() {
        return description;
    }

    @Override
    public void close() {
        for (Thread _ : threads) {
            work.add(STOP);
        }
        boolean interrupted = false;
        for (Thread thread : threads) {
            while (thread.isAlive()) {
                try {
                    thread.join();
                } catch (InterruptedException asked) {
                    interrupted = true;
                }
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void runWorker() {
        try (Arena arena = Arena.ofConfined()) {
            PositionalIo calls = new PositionalIo(file, arena);
            IoRequest request = takeWork();
            while (request != STOP) {
                execute(request, calls);
                ended.add(request);
                if (work.isEmpty() || ended.size() >= WAKE_BATCH) {
                    LockSupport.unpark(waiting);
                }
                request = takeWork();
            }
        } catch (InterruptedException impossible) {
            throw new AssertionError("a disk thread was interrupted; only STOP ends it", impossible);
        }
    }

    /// The next request, often without sleeping: the owner has just been woken and will queue another one for
    /// what has ended, so it gets the processor first.
    @SuppressWarnings("ThreadPriorityCheck") // Nothing depends on it but the cost of a request.
    private IoRequest takeWork() throws InterruptedException {
        IoRequest request = work.poll();
        if (request == null) {
            Thread.yield();
            request = work.poll();
        }
        return request == null ? work.take() : request;
    }

    private static void execute(IoRequest request, PositionalIo calls) {
        boolean more = true;
        while (more) {
            more = !request.completeWith(calls.execute(request));
        }
    }

    /// The blocking calls that carry out requests, for one thread.
    private static final class PositionalIo {

        private final DeviceFile file;
        private final MemorySegment errno;
        private final MethodHandle pread;
        private final MethodHandle pwrite;

        /// @param arena outlives this object
        PositionalIo(DeviceFile file, Arena arena) {
            this.file = file;
            this.errno = arena.allocate(Linker.Option.captureStateLayout());
            this.pread = file.libc().handle(LibcFunction.PREAD);
            this.pwrite = file.libc().handle(LibcFunction.PWRITE);
        }

        /// Carries out what remains of a request, or a part.
        ///
        /// @return bytes moved, or a negated errno
        long execute(IoRequest request) {
            return switch (request.operation()) {
                case READ -> transfer(pread, request);
                case WRITE -> transfer(pwrite, request);
                case SYNC -> file.libc().call(LibcFunction.FDATASYNC, file.descriptor());
                case DISCARD ->
                    file.libc()
                            .call(
                                    LibcFunction.FALLOCATE,
                                    file.descriptor(),
                                    DeviceFile.PUNCH_HOLE,
                                    request.offset(),
                                    request.remaining());
            };
        }

        private long transfer(MethodHandle call, IoRequest request) {
            try {
                long moved = (long) call.invokeExact(
                        errno, file.descriptor(), request.address(), request.remaining(), request.offset());
                return Libc.result(errno, moved);
            } catch (Throwable impossible) {
                throw new AssertionError("a C function threw", impossible);
            }
        }
    }
}
