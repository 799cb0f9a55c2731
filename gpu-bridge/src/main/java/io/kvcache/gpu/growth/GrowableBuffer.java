package io.kvcache.gpu.growth;

import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.driver.VirtualMemory.PhysicalPages;
import io.kvcache.gpu.growth.VirtualMemoryPool.PageMappingThread;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/// One sequence's memory, which grows and shrinks at its end while its beginning stays where it is.
///
/// **Ownership.** The caller closes it once nothing is on its way there.
///
/// **Threads.** The driver's.
public final class GrowableBuffer implements AutoCloseable {

    private final VirtualMemoryPool pool;
    private final VirtualMemory memory;
    private final DeviceSpan range;
    private final List<PhysicalPages> pages = new ArrayList<>();
    private @Nullable PendingPage pendingPage;
    private long bytes;
    private boolean closed;

    /// A page that is being mapped behind the last.
    ///
    /// @param source one that the pool had, or null for a new one
    private record PendingPage(
            CompletableFuture<PhysicalPages> mapped,
            @Nullable PhysicalPages source) {}

    GrowableBuffer(VirtualMemoryPool pool, VirtualMemory memory, DeviceSpan range) {
        this.pool = pool;
        this.memory = memory;
        this.range = range;
    }

    /// Returns the start address, which stays the same at any size.
    public DeviceAddress address() {
        return range.address();
    }

    /// How large it is.
    public long bytes() {
        return bytes;
    }

    /// Makes it so large, or leaves it as it is. What was in it stays; what is new is undefined.
    ///
    /// @param newBytes as many as it has, and up to what it was opened for
    /// @return false when there is no memory
    /// @throws DeviceException when the device fails
    public boolean grow(long newBytes) {
        requireOpen();
        if (newBytes < bytes || newBytes > range.bytes()) {
            throw new IllegalArgumentException(
                    "growing to " + newBytes + " bytes; it takes " + bytes + " to " + range.bytes());
        }
        long wanted = pool.pagesFor(newBytes);
        while (pages.size() < wanted) {
            if (awaitMapping()) {
                continue;
            }
            if (!pool.providePage(this)) {
                return false; // what was mapped is surplus, and goes back like any
            }
            mapNext();
        }
        bytes = newBytes;
        pool.onGrown(this);
        return true;
    }

    private void mapNext() {
        PhysicalPages page = pool.takePage();
        try {
            memory.map(end(pages.size()), page);
        } catch (DeviceException refused) {
            pool.recycle(page);
            throw refused;
        }
        pages.add(page);
    }

    private DeviceAddress end(int pageCount) {
        return range.address().plus(pageCount * memory.pageBytes());
    }

    /// Makes it smaller, at once. What is cut off may go later, when the pool or another span takes
    /// it: copies and kernels in streams of the driver are waited for then, a minute at most, and
    /// those in streams of others must be over.
    ///
    /// @param newBytes 0 and up to as many as it has
    public void shrink(long newBytes) {
        requireOpen();
        if (newBytes < 0 || newBytes > bytes) {
            throw new IllegalArgumentException("shrinking to " + newBytes + " bytes; it takes 0 to " + bytes);
        }
        bytes = newBytes;
    }

    /// Pages behind it that it does not need.
    long surplusPages() {
        return pages.size() + (pendingPage == null ? 0 : 1) - pool.pagesFor(bytes);
    }

    /// Maps a page that it will need soon, if it needs any now and there is room for one more.
    boolean mapAhead() {
        if (!needsPage() || !pool.providePage(this)) {
            return false;
        }
        mapNext();
        return true;
    }

    private boolean needsPage() {
        boolean room = (pages.size() + 1) * memory.pageBytes() <= range.bytes();
        return bytes > 0 && surplusPages() == 0 && room;
    }

    /// The same by another thread, while this one goes on.
    ///
    /// @return whether that was asked
    boolean mapAhead(PageMappingThread beside) {
        if (!needsPage() || !pool.canMapAhead()) {
            return false;
        }
        PhysicalPages given = pool.takePageForMapping();
        pendingPage = new PendingPage(beside.map(end(pages.size()), given), given);
        return true;
    }

    /// Waits for a page that is being mapped: not longer than mapping it here would take, but for others
    /// that were asked for before.
    ///
    /// @return whether there was one
    /// @throws DeviceException when the device is of no use any more, or lets this thread not in
    boolean awaitMapping() {
        PendingPage awaited = pendingPage;
        if (awaited == null) {
            return false;
        }
        pendingPage = null;
        try {
            PhysicalPages page = awaited.mapped.join();
            memory.takeOver(end(pages.size()), page);
            pages.add(page);
        } catch (CompletionException refused) {
            pool.onMappingFailed(awaited.source);
            if (!(refused.getCause() instanceof DeviceException cause)) {
                throw refused;
            }
            if (cause.error().isFatal()) {
                throw cause;
            }
        }
        return true;
    }

    /// Takes the last page away, which is surplus, when none is being mapped.
    ///
    /// @throws DeviceException when what is on its way there does not end; the page stays then
    PhysicalPages unmapLast() {
        PhysicalPages page = pages.getLast();
        memory.unmap(end(pages.size() - 1), page);
        pages.removeLast();
        return page;
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException("the span is closed");
        }
    }

    /// Gives its memory and its addresses back, once all is over that streams of the driver were
    /// given: a minute at most for each page.
    ///
    /// @throws DeviceException when that does not end, or the device fails; the span is closed all
    ///     the same, and what it still has goes with the driver
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        try {
            awaitMapping();
            while (!pages.isEmpty()) {
                pool.recycle(unmapLast());
            }
            memory.unreserve(range);
        } finally {
            pool.onClosed(this);
        }
    }
}
