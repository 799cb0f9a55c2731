package io.kvcache.gpu.growth;

import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.PhysicalPages;
import io.kvcache.gpu.driver.VirtualMemory;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
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
public final class GrowthPool implements AutoCloseable {

    private final VirtualMemory memory;
    private final long mostPages;
    private final long slackPages;
    private final Deque<PhysicalPages> kept = new ArrayDeque<>();
    private final List<GrowingSpan> spans = new ArrayList<>();
    private final @Nullable MappingThread mapping;
    private long pages;
    private boolean closed;

    /// A pool without any memory yet.
    ///
    /// @param mostBytes of memory at most
    /// @param slackBytes of it that may be in nobody's use
    public GrowthPool(VirtualMemory memory, long mostBytes, long slackBytes) {
        this(memory, mostBytes, slackBytes, null);
    }

    /// The same, with pages mapped ahead by a thread of its own: a span that needs its last page has the
    /// next one mapped while its owner goes on, within the slack.
    ///
    /// @param beside another driver of the same device, open and unused; the pool's from here on, unless
    ///     this throws
    public GrowthPool(VirtualMemory memory, long mostBytes, long slackBytes, @Nullable DeviceDriver beside) {
        this.memory = memory;
        mostPages = mostBytes / memory.pageBytes();
        slackPages = slackBytes / memory.pageBytes();
        if (mostPages < 1 || slackBytes < 0) {
            throw new IllegalArgumentException("a pool of %d bytes with a slack of %d; it takes %d and up, and 0 and up"
                    .formatted(mostBytes, slackBytes, memory.pageBytes()));
        }
        mapping = beside == null ? null : new MappingThread(beside);
    }

    /// Opens a span without any memory yet.
    ///
    /// @param mostBytes that it may grow to; addresses for that many are taken
    /// @throws DeviceException when the device has no such addresses
    public GrowingSpan open(long mostBytes) {
        if (mostBytes < 1) {
            throw new IllegalArgumentException("a span that grows to " + mostBytes + " bytes; it takes 1 and up");
        }
        GrowingSpan span = new GrowingSpan(this, memory, memory.reserve(pagesFor(mostBytes) * memory.pageBytes()));
        spans.add(span);
        return span;
    }

    long pagesFor(long bytes) {
        return (bytes + memory.pageBytes() - 1) / memory.pageBytes();
    }

    /// A page that is mapped nowhere.
    ///
    /// @return whether there is one; it is the first of those that are kept then
    boolean provide(GrowingSpan wanting) {
        if (!kept.isEmpty()) {
            return true;
        }
        if (pages < mostPages && create()) {
            return true;
        }
        for (GrowingSpan other : spans) {
            if (!other.equals(wanting) && other.surplus() > 0 && unmap(other)) {
                return true;
            }
        }
        return false;
    }

    /// Takes a page of a span's surplus; none, when it was still to come and did not.
    private boolean unmap(GrowingSpan span) {
        if (!span.settle() || span.surplus() > 0) {
            kept.add(span.unmapLast());
        }
        return !kept.isEmpty();
    }

    /// Whether a page may be mapped ahead without taking any span's.
    boolean mayTake() {
        return !kept.isEmpty() || pages < mostPages;
    }

    /// A page to be mapped ahead, which is one that is kept, or null for a new one that counts from now on.
    @Nullable
    PhysicalPages takeForMapping() {
        if (kept.isEmpty()) {
            pages++;
            return null;
        }
        return kept.remove();
    }

    /// What was to be mapped was not.
    void notMapped(@Nullable PhysicalPages given) {
        if (given == null) {
            pages--;
        } else {
            keep(given);
        }
    }

    /// A span has grown: it will need more.
    void grown(GrowingSpan span) {
        if (mapping != null && spare() < slackPages) {
            span.mapAhead(mapping);
        }
    }

    private boolean create() {
        try {
            kept.add(memory.create(memory.pageBytes()));
            pages++;
            return true;
        } catch (DeviceException refused) {
            if (refused.error().isFatal()) {
                throw refused;
            }
            return false; // somebody else has the memory
        }
    }

    PhysicalPages take() {
        return kept.remove();
    }

    void keep(PhysicalPages page) {
        kept.addFirst(page);
    }

    /// Maps at most so many pages ahead, or has them mapped, one for each span that has less than a page of
    /// room and is asked about in turn, and gives back what is over the slack.
    ///
    /// @return how much was done
    public int tick(int aheadAtMost) {
        int done = 0;
        for (int i = 0; i < spans.size() && done < aheadAtMost && spare() < slackPages; i++) {
            GrowingSpan span = spans.get(i);
            done += (mapping == null ? span.mapAhead() : span.mapAhead(mapping)) ? 1 : 0;
        }
        return done + giveBack();
    }

    /// Pages in nobody's use.
    private long spare() {
        return kept.size() + spans.stream().mapToLong(GrowingSpan::surplus).sum();
    }

    private int giveBack() {
        int done = 0;
        while (spare() > slackPages) {
            if (!kept.isEmpty() || fattest().map(this::unmap).orElse(false)) {
                memory.release(kept.remove());
                pages--;
                done++;
            }
        }
        return done;
    }

    private Optional<GrowingSpan> fattest() {
        return spans.stream().max(Comparator.comparingLong(GrowingSpan::surplus));
    }

    /// Bytes of memory that are taken from the device.
    public long physicalBytes() {
        return pages * memory.pageBytes();
    }

    /// Bytes of memory that may be in nobody's use after a tick.
    public long slackBytes() {
        return slackPages * memory.pageBytes();
    }

    void gone(GrowingSpan span) {
        spans.remove(span);
    }

    /// Gives all memory back.
    ///
    /// @throws IllegalStateException when closed twice, or while spans are open
    /// @throws DeviceException when the device takes no more; what it did not take goes with the driver
    @Override
    public void close() {
        if (closed || !spans.isEmpty()) {
            throw new IllegalStateException(closed ? "the pool is closed" : spans.size() + " spans are open");
        }
        closed = true;
        try {
            if (mapping != null) {
                mapping.close();
            }
        } finally {
            pages = 0;
            releaseKept();
        }
    }

    /// All of them, whatever the device has against one; the first that cannot be asked for is asked for
    /// once more, as the next call may find the device again.
    private void releaseKept() {
        DeviceException given = null;
        boolean again = true;
        while (!kept.isEmpty()) {
            PhysicalPages page = kept.remove();
            try {
                memory.release(page);
            } catch (DeviceException refused) {
                if (again) {
                    again = false;
                    kept.addFirst(page);
                } else {
                    given = refused;
                }
            }
        }
        if (given != null) {
            throw given;
        }
    }
}
