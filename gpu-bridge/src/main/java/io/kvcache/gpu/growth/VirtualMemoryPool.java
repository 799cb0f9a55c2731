package io.kvcache.gpu.growth;

import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.driver.VirtualMemory.PhysicalPages;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// The memory behind all growing spans of a device, page by page.
///
/// Mapping and unmapping are slow, so a span that shrinks keeps its pages where they are, and a page that
/// was unmapped is kept for the next that grows: as long as all of these together are no more than the
/// slack. A span that grows takes its own surplus first, then what is kept here, then new pages, and when
/// there are none, the surplus of others. [#tick] maps pages ahead for spans that are about to need them,
/// and gives back what is over the slack.
///
/// So pages in use are those that live bytes need, and at most [#slackPages] more after a tick.
///
/// **Threads.** The driver's.
public final class VirtualMemoryPool implements AutoCloseable {

    private final VirtualMemory memory;
    private final long maxPages;
    private final long slackPages;
    private final Deque<PhysicalPages> recycled = new ArrayDeque<>();
    private final List<GrowableBuffer> spans = new ArrayList<>();
    private final @Nullable PageMappingThread mapping;
    private long pages;
    private boolean closed;

    /// A pool without any memory yet.
    ///
    /// @param maxBytes of memory at most
    /// @param slackBytes of it that may be unused
    public VirtualMemoryPool(VirtualMemory memory, long maxBytes, long slackBytes) {
        this(memory, maxBytes, slackBytes, null);
    }

    /// The same, with pages mapped ahead by a thread of its own: a span that needs its last page has the
    /// next one mapped while its owner goes on, within the slack.
    ///
    /// @param beside another driver of the same device, open and unused; the pool's from here on, unless
    ///     this throws
    public VirtualMemoryPool(VirtualMemory memory, long maxBytes, long slackBytes, @Nullable DeviceDriver beside) {
        this.memory = memory;
        maxPages = maxBytes / memory.pageBytes();
        slackPages = slackBytes / memory.pageBytes();
        if (maxPages < 1 || slackBytes < 0) {
            throw new IllegalArgumentException("a pool of %s bytes with a slack of %s; it takes %s and up, and 0 and up"
                    .formatted(maxBytes, slackBytes, memory.pageBytes()));
        }
        mapping = beside == null ? null : new PageMappingThread(beside);
    }

    /// Opens a span without any memory yet.
    ///
    /// @param maxBytes that it may grow to; addresses for that many are taken
    /// @throws DeviceException when the device has no such addresses
    public GrowableBuffer open(long maxBytes) {
        if (maxBytes < 1) {
            throw new IllegalArgumentException("a span that grows to " + maxBytes + " bytes; it takes 1 and up");
        }
        GrowableBuffer span = new GrowableBuffer(this, memory, memory.reserve(pagesFor(maxBytes) * memory.pageBytes()));
        spans.add(span);
        return span;
    }

    long pagesFor(long bytes) {
        return (bytes + memory.pageBytes() - 1) / memory.pageBytes();
    }

    /// A page that is mapped nowhere.
    ///
    /// @return whether there is one; it is the first of those that are kept then
    boolean providePage(GrowableBuffer wanting) {
        if (!recycled.isEmpty()) {
            return true;
        }
        if (pages < maxPages && create()) {
            return true;
        }
        for (GrowableBuffer other : spans) {
            if (!other.equals(wanting) && other.surplusPages() > 0 && unmap(other)) {
                return true;
            }
        }
        return false;
    }

    /// Takes a page of a span's surplus; none, when it was still to come and did not.
    private boolean unmap(GrowableBuffer span) {
        if (!span.awaitMapping() || span.surplusPages() > 0) {
            recycled.add(span.unmapLast());
        }
        return !recycled.isEmpty();
    }

    /// Returns whether a page may be mapped ahead without taking one from a span.
    boolean canMapAhead() {
        return !recycled.isEmpty() || pages < maxPages;
    }

    /// A page to be mapped ahead, which is one that is kept, or null for a new one that counts from now on.
    @Nullable
    PhysicalPages takePageForMapping() {
        if (recycled.isEmpty()) {
            pages++;
            return null;
        }
        return recycled.remove();
    }

    void onMappingFailed(@Nullable PhysicalPages given) {
        if (given == null) {
            pages--;
        } else {
            recycle(given);
        }
    }

    /// A span has grown: it will need more.
    void onGrown(GrowableBuffer span) {
        if (mapping != null && findSurplus() < slackPages) {
            span.mapAhead(mapping);
        }
    }

    private boolean create() {
        try {
            recycled.add(memory.create(memory.pageBytes()));
            pages++;
            return true;
        } catch (DeviceException refused) {
            if (refused.error().isFatal()) {
                throw refused;
            }
            return false; // others have the memory
        }
    }

    PhysicalPages takePage() {
        return recycled.remove();
    }

    void recycle(PhysicalPages page) {
        recycled.addFirst(page);
    }

    /// Maps at most this many pages ahead, or has them mapped, one for each span that has less than a page of
    /// room and is asked about in turn, and gives back what is over the slack.
    ///
    /// @return how much was done
    public int tick(int maxAhead) {
        int done = 0;
        for (int i = 0; i < spans.size() && done < maxAhead && findSurplus() < slackPages; i++) {
            GrowableBuffer span = spans.get(i);
            done += (mapping == null ? span.mapAhead() : span.mapAhead(mapping)) ? 1 : 0;
        }
        return done + releaseExcess();
    }

    private long findSurplus() {
        return recycled.size()
                + spans.stream().mapToLong(GrowableBuffer::surplusPages).sum();
    }

    private int releaseExcess() {
        int done = 0;
        while (findSurplus() > slackPages) {
            if (!recycled.isEmpty() || largestSurplus().map(this::unmap).orElse(false)) {
                memory.release(recycled.remove());
                pages--;
                done++;
            }
        }
        return done;
    }

    private Optional<GrowableBuffer> largestSurplus() {
        return spans.stream().max(Comparator.comparingLong(GrowableBuffer::surplusPages));
    }

    /// Bytes of memory that are taken from the device.
    public long physicalBytes() {
        return pages * memory.pageBytes();
    }

    /// Bytes of memory that may be unused after a tick.
    public long slackBytes() {
        return slackPages * memory.pageBytes();
    }

    void onClosed(GrowableBuffer span) {
        spans.remove(span);
    }

    /// Gives all memory back.
    ///
    /// @throws IllegalStateException while spans are open; a second close does nothing
    /// @throws DeviceException when the device takes no more; what it did not take goes with the driver
    @Override
    public void close() {
        if (closed) {
            return;
        }
        if (!spans.isEmpty()) {
            throw new IllegalStateException(spans.size() + " spans are open");
        }
        closed = true;
        try {
            if (mapping != null) {
                mapping.close();
            }
        } finally {
            pages = 0;
            releaseRecycled();
        }
    }

    /// All of them, whatever the device has against one; the first that cannot be asked for is asked for
    /// once more, as the next call may find the device again.
    private void releaseRecycled() {
        DeviceException given = null;
        boolean again = true;
        while (!recycled.isEmpty()) {
            PhysicalPages page = recycled.remove();
            try {
                memory.release(page);
            } catch (DeviceException refused) {
                if (again) {
                    again = false;
                    recycled.addFirst(page);
                } else {
                    given = refused;
                }
            }
        }
        if (given != null) {
            throw given;
        }
    }

    /// Maps pages beside the thread that computes: a driver belongs to one thread, so this has another of the
    /// same device, and hands over what it mapped.
    ///
    /// **Threads.** Asked and closed by the pool's.
    static final class PageMappingThread implements AutoCloseable {

        private static final Logger LOG = System.getLogger(PageMappingThread.class.getName());
        private static final long MAX_CLOSE_NANOS = TimeUnit.SECONDS.toNanos(60);

        private final DeviceDriver driver;
        private final VirtualMemory memory;
        private final ExecutorService thread;

        /// @param driver this one's from here on
        PageMappingThread(DeviceDriver driver) {
            this.driver = driver;
            memory = driver.virtualMemory();
            thread = Executors.newSingleThreadExecutor(
                    Thread.ofPlatform().daemon(true).name("kvcache-growth").factory());
        }

        /// Has a page mapped.
        ///
        /// @param page or null for a new one
        /// @return the page once it is mapped, to be taken over; ends with [DeviceException] when the device
        ///     refuses, and a new page is given back then
        CompletableFuture<PhysicalPages> map(DeviceAddress at, @Nullable PhysicalPages page) {
            return CompletableFuture.supplyAsync(() -> page == null ? mapNew(at) : mapGiven(at, page), thread);
        }

        private PhysicalPages mapNew(DeviceAddress at) {
            PhysicalPages page = memory.create(memory.pageBytes());
            try {
                return mapGiven(at, page);
            } catch (DeviceException refused) {
                memory.release(page);
                throw refused;
            }
        }

        private PhysicalPages mapGiven(DeviceAddress at, PhysicalPages page) {
            memory.map(at, page);
            memory.handOver(at, page);
            return page;
        }

        /// Ends the thread, which has nothing to do any more, and gives the driver back. A thread that does
        /// not come back from the device keeps its driver for good.
        ///
        /// @throws IllegalStateException when the driver still had something
        @Override
        public void close() {
            thread.shutdown();
            if (awaitTermination()) {
                driver.close();
            } else {
                LOG.log(
                        Level.ERROR,
                        "the thread that maps pages does not come back from the device: it is left behind");
            }
        }

        private boolean awaitTermination() {
            long since = System.nanoTime();
            boolean interrupted = false;
            while (true) {
                try {
                    long left = MAX_CLOSE_NANOS - (System.nanoTime() - since);
                    boolean ended = thread.awaitTermination(left, TimeUnit.NANOSECONDS);
                    if (interrupted) {
                        Thread.currentThread().interrupt();
                    }
                    return ended;
                } catch (InterruptedException stopped) {
                    interrupted = true;
                }
            }
        }
    }
}
