package io.kvcache.gpu.tier;

import io.kvcache.gpu.driver.DeviceSpan;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/// A span of the device's memory that is written front to back and then reclaimed whole.
///
/// Owned by the tier's thread, but for the pins.
final class DeviceRegion {

    /// Nobody may pin: its blocks are about to go.
    private static final int CLOSED = -1;

    private final DeviceSpan span;
    private final List<DeviceEntry> entries = new ArrayList<>();
    private final AtomicInteger pins = new AtomicInteger();
    private long sequence;
    private long usedBytes;
    private int activeUses;

    DeviceRegion(DeviceSpan span) {
        this.span = span;
    }

    /// Begins it anew, under a number that no region had before.
    void open(long number) {
        sequence = number;
        usedBytes = 0;
        entries.clear();
        pins.set(0);
    }

    long sequence() {
        return sequence;
    }

    boolean fits(long bytes) {
        return usedBytes + DeviceGeometry.pages(bytes) <= span.bytes();
    }

    /// Takes the next pages of it.
    ///
    /// @return their offset
    long allocate(long bytes) {
        long offset = usedBytes;
        usedBytes += DeviceGeometry.pages(bytes);
        return offset;
    }

    DeviceSpan span(long offset, long bytes) {
        return span.slice(offset, bytes);
    }

    void add(DeviceEntry entry) {
        entries.add(entry);
    }

    List<DeviceEntry> entries() {
        return entries;
    }

    /// A copy to or from it begins.
    void beginUse() {
        activeUses++;
    }

    /// A copy to or from it has ended.
    void endUse() {
        assert activeUses > 0 : "no copy is on its way";
        activeUses--;
    }

    boolean isBusy() {
        return activeUses > 0;
    }

    /// Has the region stay as it is. Any thread.
    ///
    /// @return false when it is about to go
    boolean pin() {
        int held = pins.get();
        while (held != CLOSED) {
            if (pins.compareAndSet(held, held + 1)) {
                return true;
            }
            held = pins.get();
        }
        return false;
    }

    /// Ends that. Any thread.
    void unpin() {
        pins.decrementAndGet();
    }

    boolean isPinned() {
        return pins.get() > 0;
    }

    /// Has nobody pin it any more.
    ///
    /// @return false when somebody does
    boolean close() {
        return pins.compareAndSet(0, CLOSED);
    }
}
