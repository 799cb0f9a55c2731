package io.kvcache.tiers.disk;

import static io.kvcache.tiers.disk.DiskEntry.INT32;
import static io.kvcache.tiers.disk.DiskEntry.INT64;

import io.kvcache.tiers.disk.Region.RegionEpoch;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The head of a write batch: which blocks follow it, written in one go with them.
///
/// After a crash the open region has no trailer; its batches are found one after another from its start. A
/// head proves only that itself is whole: a block behind it may be torn, which its own checksum shows when it
/// is read.
///
/// ```
///  0  int64  magic                  8  int32  CRC32C of the head      12  int32  entries
/// 16  life, 20 bytes               36  int32  page of this head       40  int32  pages of head and blocks
/// 64  entries, 64 bytes each, up to a page
/// ```
///
/// @param page where the head begins in its region
/// @param pages of head and blocks together
/// @param entries the blocks that follow, in order, without gaps; tombstones, of no pages, among them
record WriteBatchHeader(RegionEpoch epoch, int page, int pages, List<DiskEntry> entries) {

    /// Pages of a head.
    static final int HEAD_PAGES = 1;

    private static final int HEADER_BYTES = 64;

    /// As many as one page holds: 63. With blocks of 64 KiB a head is a thousandth of its batch.
    static final int MAX_ENTRIES = (DiskGeometry.PAGE_BYTES - HEADER_BYTES) / DiskEntry.ENTRY_BYTES;

    private static final long MAGIC = 0x3150_5247_4356_4b4bL; // "KKVCGRP1", little-endian

    WriteBatchHeader {
        entries = List.copyOf(entries);
    }

    /// Lays blocks out behind a head: fills in where each begins.
    ///
    /// @param blocks entries whose page is not looked at
    static WriteBatchHeader of(RegionEpoch regionEpoch, int page, List<DiskEntry> blocks) {
        assert blocks.size() <= MAX_ENTRIES : blocks.size() + " entries in a batch";
        int at = page + HEAD_PAGES;
        List<DiskEntry> placed = new ArrayList<>(blocks.size());
        for (DiskEntry block : blocks) {
            placed.add(block.withPage(at));
            at += block.pages();
        }
        return new WriteBatchHeader(regionEpoch, page, at - page, placed);
    }

    /// Writes the head.
    ///
    /// @param head exactly a page
    void write(MemorySegment head) {
        head.fill((byte) 0);
        head.set(INT64, 0, MAGIC);
        head.set(INT32, 12, entries.size());
        epoch.write(head);
        head.set(INT32, 36, page);
        head.set(INT32, 40, pages);
        MemorySegment table = head.asSlice(HEADER_BYTES);
        for (int i = 0; i < entries.size(); i++) {
            entries.get(i).write(table, i);
        }
        MetadataCrc.write(head);
    }

    /// Reads a head, of whichever life, or answers null when it is torn or none.
    ///
    /// @param head exactly a page
    static @Nullable WriteBatchHeader read(MemorySegment head) {
        int entries = head.get(INT32, 12);
        int pages = head.get(INT32, 40);
        boolean sound = head.get(INT64, 0) == MAGIC
                && entries > 0
                && entries <= MAX_ENTRIES
                && pages >= HEAD_PAGES
                && MetadataCrc.matches(head);
        if (!sound) {
            return null;
        }
        MemorySegment table = head.asSlice(HEADER_BYTES);
        List<DiskEntry> read = new ArrayList<>(entries);
        for (int i = 0; i < entries; i++) {
            read.add(DiskEntry.read(table, i));
        }
        WriteBatchHeader batchHeader = new WriteBatchHeader(RegionEpoch.read(head), head.get(INT32, 36), pages, read);
        return batchHeader.isContiguous() ? batchHeader : null;
    }

    private boolean isContiguous() {
        long at = page + (long) HEAD_PAGES;
        boolean follows = page >= 0;
        for (DiskEntry entry : entries) {
            follows &= entry.page() == at && entry.isValid();
            at += entry.pages();
        }
        return follows && at == page + (long) pages;
    }
}
