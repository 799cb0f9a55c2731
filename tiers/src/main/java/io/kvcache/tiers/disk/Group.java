package io.kvcache.tiers.disk;

import static io.kvcache.tiers.disk.EntryTable.INT32;
import static io.kvcache.tiers.disk.EntryTable.INT64;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The head of a group: which blocks follow it, written in one go with them.
///
/// After a crash the open region has no trailer; its groups are found one after another from its start. A head
/// proves only that itself is whole: a block behind it may be torn, which its own checksum shows when it is read.
///
/// ```
///  0  int64  magic                  8  int32  CRC32C of the head      12  int32  entries
/// 16  int64  region's sequence     24  int32  page of this head       28  int32  pages of head and blocks
/// 32  entries, 64 bytes each, up to a whole page
/// ```
///
/// @param sequence which life of the region this belongs to; what an earlier life left does not match
/// @param page where the head begins in its region
/// @param pages of head and blocks together
/// @param entries the blocks that follow, in order, without gaps
public record Group(long sequence, int page, int pages, List<DiskEntry> entries) {

    private static final long MAGIC = 0x3150_5247_4356_4b4bL; // "KKVCGRP1", little-endian
    private static final int HEADER_BYTES = 32;

    public Group {
        entries = List.copyOf(entries);
    }

    /// Lays blocks out behind a head: fills in where each begins.
    ///
    /// @param blocks entries whose page is not looked at
    public static Group of(long sequence, int page, List<DiskEntry> blocks) {
        int at = page + headPages(blocks.size());
        List<DiskEntry> placed = new ArrayList<>(blocks.size());
        for (DiskEntry block : blocks) {
            placed.add(block.at(at));
            at += block.pages();
        }
        return new Group(sequence, page, at - page, placed);
    }

    /// Pages of a head with this many entries.
    public static int headPages(int entries) {
        return Math.ceilDiv(HEADER_BYTES + entries * EntryTable.ENTRY_BYTES, Geometry.PAGE_BYTES);
    }

    /// Pages of the head.
    public int headPages() {
        return headPages(entries.size());
    }

    /// Writes the head.
    ///
    /// @param target exactly the head's pages
    public void write(MemorySegment target) {
        target.fill((byte) 0);
        target.set(INT64, 0, MAGIC);
        target.set(INT32, 12, entries.size());
        target.set(INT64, 16, sequence);
        target.set(INT32, 24, page);
        target.set(INT32, 28, pages);
        MemorySegment table = target.asSlice(HEADER_BYTES);
        for (int i = 0; i < entries.size(); i++) {
            EntryTable.write(table, i, entries.get(i));
        }
        Seal.close(target);
    }

    /// How many pages the head at the start of a span takes, or 0 when none begins there.
    ///
    /// @param span at least one page
    /// @param regionPages a head that claims more is none
    public static int headPagesAt(MemorySegment span, int regionPages) {
        int entries = span.get(INT32, 12);
        boolean plausible = span.get(INT64, 0) == MAGIC
                && entries > 0
                && entries <= (long) regionPages * Geometry.PAGE_BYTES / EntryTable.ENTRY_BYTES;
        return plausible ? headPages(entries) : 0;
    }

    /// Reads a head, or answers null when it is torn, of another life of the region, or not where it says.
    ///
    /// @param span exactly the head's pages, as [#headPagesAt] told
    public static @Nullable Group read(MemorySegment span, long sequence, int page) {
        int entries = span.get(INT32, 12);
        boolean belongs = span.get(INT64, 0) == MAGIC
                && headPages(entries) * (long) Geometry.PAGE_BYTES == span.byteSize()
                && Seal.holds(span)
                && span.get(INT64, 16) == sequence
                && span.get(INT32, 24) == page;
        if (!belongs) {
            return null;
        }
        MemorySegment table = span.asSlice(HEADER_BYTES);
        List<DiskEntry> read = new ArrayList<>(entries);
        for (int i = 0; i < entries; i++) {
            read.add(EntryTable.read(table, i));
        }
        return new Group(sequence, page, span.get(INT32, 28), read);
    }
}
