package io.kvcache.tiers.disk;

import java.util.List;

/// So much of a region was durable at some time, and must be found.
///
/// @param pages from the region's start, in whole groups
/// @param entries of those groups
/// @param replacing of those, entries that may replace earlier ones by other content: tombstones, and objects. A
///     block's key stands for its bytes
record DurableExtent(int pages, int entries, int replacing) {

    static final DurableExtent EMPTY = new DurableExtent(0, 0, 0);

    /// Entries that may replace others.
    static int replacing(List<DiskEntry> entries) {
        return (int) entries.stream()
                .filter(entry -> entry.isTombstone() || entry.isObject())
                .count();
    }

    DurableExtent plus(WriteBatchHeader batchHeader) {
        return new DurableExtent(
                batchHeader.page() + batchHeader.pages(),
                entries + batchHeader.entries().size(),
                replacing + replacing(batchHeader.entries()));
    }
}
