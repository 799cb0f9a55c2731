package io.kvcache.gpu.growth;

import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DevicePages;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.VirtualMemory;
import java.util.ArrayList;
import java.util.List;

/// One sequence's memory, which grows and shrinks at its end while its beginning stays where it is.
///
/// **Ownership.** Who opened it closes it, once nothing is on its way there.
///
/// **Threads.** The driver's.
public final class GrowingSpan implements AutoCloseable {

    private final GrowthPool pool;
    private final VirtualMemory memory;
    private final DeviceSpan range;
    private final List<DevicePages> pages = new ArrayList<>();
    private long bytes;
    private boolean closed;

    GrowingSpan(GrowthPool pool, VirtualMemory memory, DeviceSpan range) {
        this.pool = pool;
        this.memory = memory;
        this.range = range;
    }

    /// Where it begins, whatever its size.
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
            if (!pool.provide(this)) {
                return false; // what was mapped is surplus, and goes back like any
            }
            mapNext();
        }
        bytes = newBytes;
        return true;
    }

    private void mapNext() {
        DevicePages page = pool.take();
        try {
            memory.map(end(pages.size()), page);
        } catch (DeviceException refused) {
            pool.keep(page);
            throw refused;
        }
        pages.add(page);
    }

    private DeviceAddress end(int pageCount) {
        return range.address().plus(pageCount * memory.pageBytes());
    }

    /// Makes it smaller. What is cut off may be gone: copies and kernels in streams of the driver are waited
    /// for before it goes, those in streams of others must be over.
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
    long surplus() {
        return pages.size() - pool.pagesFor(bytes);
    }

    /// Maps a page that it will need soon, if it needs any now and there is room for one more.
    boolean mapAhead() {
        boolean room = (pages.size() + 1) * memory.pageBytes() <= range.bytes();
        if (bytes == 0 || surplus() > 0 || !room || !pool.provide(this)) {
            return false;
        }
        mapNext();
        return true;
    }

    /// Takes the last page away, which is surplus.
    DevicePages unmapLast() {
        DevicePages page = pages.removeLast();
        memory.unmap(end(pages.size()), page);
        return page;
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException("the span is closed");
        }
    }

    /// Gives its memory and its addresses back.
    ///
    /// @throws IllegalStateException when closed twice
    @Override
    public void close() {
        requireOpen();
        closed = true;
        while (!pages.isEmpty()) {
            pool.keep(unmapLast());
        }
        memory.unreserve(range);
        pool.gone(this);
    }
}
