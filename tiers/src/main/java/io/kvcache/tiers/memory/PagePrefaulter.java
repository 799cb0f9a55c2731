package io.kvcache.tiers.memory;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.core.spi.HostMemory;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.LongPredicate;

/// Has the kernel back a span of memory with pages, a bounded step at a time.
///
/// The first touch of a page costs a fault, and in a virtual machine whose host has not backed it either a GiB has
/// taken up to 14 seconds; better before the first request than during it.
///
/// The thread that drives it decides on the pace, see [BackgroundPrefaulter]. The contents are never changed, so
/// others may write to the span all the while.
///
/// **Ownership.** The segment stays its owner's; closing that in between makes the next step throw.
///
/// **Threads.** One thread steps, any thread may ask how far it is.
public final class PagePrefaulter {

    // madvise(MADV_POPULATE_WRITE), Linux 5.14, is one call a step and by contract leaves the contents alone. Where
    // it is refused, an atomic addition of zero on the first long of each page is a write to the kernel and none to
    // any other thread. Reading would not do: it maps the one page of zeroes that all untouched anonymous memory
    // shares.

    private static final int MADV_POPULATE_WRITE = 23;

    /// Pages of this size or any multiple are touched; a page of 64 KiB (ARM) just gets it 16 times.
    private static final int PAGE_BYTES = 4096;

    /// Steps are multiples of it, so that each begins at a page boundary whatever the page size is.
    private static final int STEP_UNIT_BYTES = 64 << 10;

    private static final int PRIO_PROCESS = 0;
    private static final int CALLING_THREAD = 0;

    /// A tenth of the share that others get.
    private static final int NICE = 10;

    private static final VarHandle LONG = JAVA_LONG.varHandle();

    private final MemorySegment segment;
    private final LongPredicate awaitSpace;
    private final Libc libc;
    private volatile long touchedBytes;

    public PagePrefaulter(HostMemory memory) {
        this(memory.segment(), memory::awaitSpace, Libc.system());
    }

    /// @param segment starts at a page boundary
    /// @param awaitSpace as [HostMemory#awaitSpace]
    PagePrefaulter(MemorySegment segment, LongPredicate awaitSpace, Libc libc) {
        this.segment = segment;
        this.awaitSpace = awaitSpace;
        this.libc = libc;
    }

    /// Has the calling thread, which should do nothing else, give way to others: on a machine with few cores they
    /// are about to start a server, and touch themselves what they cannot wait for.
    void lowerPriority() {
        libc.call(LibcFunction.SETPRIORITY, PRIO_PROCESS, CALLING_THREAD, NICE);
    }

    /// Touches the next bytes: `maxBytes` rounded down to a multiple of 64 KiB, and at least that.
    ///
    /// @return how many bytes were touched, 0 when all are or there is space for no more
    public long prefaultNext(long maxBytes) {
        long from = touchedBytes;
        long bytes = Math.max(STEP_UNIT_BYTES, maxBytes - maxBytes % STEP_UNIT_BYTES);
        MemorySegment span = segment.asSlice(from, Math.min(bytes, segment.byteSize() - from));
        if (span.byteSize() == 0 || !awaitSpace.test(from + span.byteSize())) {
            return 0;
        }
        touch(span);
        touchedBytes = from + span.byteSize();
        return span.byteSize();
    }

    /// The part that has been touched, from 0.0 to 1.0.
    public double progress() {
        return segment.byteSize() == 0 ? 1.0 : touchedBytes / (double) segment.byteSize();
    }

    private void touch(MemorySegment span) {
        if (libc.call(LibcFunction.MADVISE, span, span.byteSize(), MADV_POPULATE_WRITE) != 0) {
            touchEachPage(span);
        }
    }

    /// Leaves out a last page of which fewer than eight bytes belong to the span.
    private static void touchEachPage(MemorySegment span) {
        long end = span.byteSize() - Long.BYTES;
        for (long offset = 0; offset <= end; offset += PAGE_BYTES) {
            long _ = (long) LONG.getAndAdd(span, offset, 0L);
        }
    }

    /// A thread around a [PagePrefaulter], that ends when all is touched.
    ///
    /// **Ownership.** The caller that starts it closes it, before the memory.
    public static final class BackgroundPrefaulter implements AutoCloseable {

        /// A huge page. Whatever changes the address space of the process waits for a step, such as a thread's start:
        /// 1 ms on a quiet machine, 28 ms where the host pages (14 s a GiB).
        private static final long STEP_BYTES = 2 << 20;

        /// Who has a store built starts threads and loads classes next, and would wait at each of them.
        private static final long DELAY_MILLIS = 1_000;

        private final PagePrefaulter toucher;
        private final Thread thread;
        private final CountDownLatch closing = new CountDownLatch(1);

        private BackgroundPrefaulter(PagePrefaulter toucher, String purpose) {
            this.toucher = toucher;
            this.thread = Thread.ofPlatform()
                    .daemon()
                    .name("kvcache-touch-" + purpose)
                    .unstarted(this::run);
        }

        /// Starts touching, in a second.
        ///
        /// @param purpose one word for the name of the thread
        public static BackgroundPrefaulter start(PagePrefaulter toucher, String purpose) {
            BackgroundPrefaulter started = new BackgroundPrefaulter(toucher, purpose);
            started.thread.start();
            return started;
        }

        /// The part that has been touched, from 0.0 to 1.0.
        public double progress() {
            return toucher.progress();
        }

        /// Waits until all is touched, or the thread has stopped for another reason.
        ///
        /// @return whether all is touched
        public boolean await(Duration timeout) throws InterruptedException {
            return thread.join(timeout) && progress() == 1.0;
        }

        /// Stops after the step at hand and waits for that. May be called again.
        @Override
        public void close() {
            closing.countDown();
            awaitEnd(thread);
        }

        /// Waits for the end of a thread, and interrupts the calling one afterwards if that was asked meanwhile.
        static void awaitEnd(Thread thread) {
            boolean interrupted = false;
            while (thread.isAlive()) {
                try {
                    thread.join();
                } catch (InterruptedException asked) {
                    interrupted = true;
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }

        private void run() {
            toucher.lowerPriority();
            boolean going = !isClosing(DELAY_MILLIS);
            while (going) {
                going = toucher.prefaultNext(STEP_BYTES) > 0 && !isClosing(0);
            }
        }

        /// Waits so long for its end, and returns whether that has come.
        private boolean isClosing(long millis) {
            try {
                return closing.await(millis, TimeUnit.MILLISECONDS);
            } catch (InterruptedException asked) {
                return true;
            }
        }
    }
}
