package io.kvcache.tiers.disk;

import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/// Reads the blocks of a group that only its head vouches for, and finds out which of them are whole.
///
/// Without this, a block that was being written again when the power went would hide the sound one that it
/// was a copy of. It costs one reading of the regions that were open.
final class GroupCheck {

    /// Read at a time: sequential reads of this size are nearly as fast as larger ones.
    static final int SPAN_BYTES = 256 << 10;

    private final Transfers transfers;
    private final Regions regions;
    private final MemorySegment buffer;
    private final Region region;
    private final Group group;
    private final Consumer<List<DiskEntry>> then;
    private final List<DiskEntry> sound = new ArrayList<>();
    private int nextPage;
    private int index;
    private ChunkedCrc crc = new ChunkedCrc();
    private long fed;
    private boolean failed;

    /// Where a group is read from.
    record Source(Transfers transfers, Regions regions, Region region, MemorySegment buffer) {}

    /// @param then told those that are whole, in their order
    GroupCheck(Source source, Group group, Consumer<List<DiskEntry>> then) {
        this.transfers = source.transfers;
        this.regions = source.regions;
        this.region = source.region;
        this.buffer = source.buffer;
        this.group = group;
        this.then = then;
        this.nextPage = group.page() + Group.HEAD_PAGES;
    }

    void read() {
        skipTombstones();
        int end = group.page() + group.pages();
        if (nextPage == end) {
            then.accept(sound);
            return;
        }
        long left = (long) (end - nextPage) * Geometry.PAGE_BYTES;
        MemorySegment span = buffer.asSlice(0, Math.min(left, SPAN_BYTES));
        long offset = regions.offset(region, nextPage);
        nextPage += (int) (span.byteSize() / Geometry.PAGE_BYTES);
        transfers.add(Transfer.read(span, offset, outcome -> arrived(span, outcome)));
    }

    /// Tombstones have no bytes that could be torn.
    private void skipTombstones() {
        while (index < group.entries().size() && group.entries().get(index).isTombstone()) {
            sound.add(group.entries().get(index));
            index++;
        }
    }

    private void arrived(MemorySegment span, IoOutcome outcome) {
        for (long at = 0; at < span.byteSize(); ) {
            at += feed(span.asSlice(at), outcome.isDone());
        }
        read();
    }

    /// Adds what belongs to the current block.
    ///
    /// @return bytes of the span that do
    private long feed(MemorySegment span, boolean done) {
        DiskEntry entry = group.entries().get(index);
        long blockBytes = (long) entry.pages() * Geometry.PAGE_BYTES;
        long taken = Math.min(blockBytes - fed, span.byteSize());
        crc.update(span.asSlice(0, Math.clamp(entry.bytes() - fed, 0, taken)));
        failed |= !done;
        fed += taken;
        if (fed == blockBytes) {
            if (!failed && crc.value() == entry.checksum()) {
                sound.add(entry);
            }
            index++;
            crc = new ChunkedCrc();
            fed = 0;
            failed = false;
            skipTombstones();
        }
        return taken;
    }
}
