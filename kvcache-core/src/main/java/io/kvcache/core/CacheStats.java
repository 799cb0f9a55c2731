package io.kvcache.core;

import java.util.List;

/// Contents of a store, and its counters since it was opened. Counters only grow; the rest is a snapshot.
///
/// @param host the host tier's memory
/// @param records the record pool
/// @param puts outcomes of requests for room
/// @param removals removed blocks and objects, by cause
/// @param openTables tables and views that are open
/// @param droppedAccesses uses not reported to the policy, because too many came at once
/// @param namespaces by namespace, in order of registration
public record CacheStats(
        Memory host,
        Records records,
        Puts puts,
        Removals removals,
        long openTables,
        long droppedAccesses,
        List<NamespaceStats> namespaces) {

    public CacheStats {
        namespaces = List.copyOf(namespaces);
    }

    /// Host memory, in slabs.
    ///
    /// @param capacityBytes in whole slabs
    /// @param heldBytes in slots that hold something, rounding included
    /// @param slabs of one size: 32 MiB, or less in less than 512 MiB of host memory
    /// @param unusedSlabs slabs that hold nothing
    /// @param slabMoves slabs that one class took from another
    public record Memory(long capacityBytes, long heldBytes, int slabs, int unusedSlabs, long slabMoves) {}

    /// The pool of records.
    ///
    /// @param bytesEach all in: index, links, buckets and the policy's own state
    public record Records(int capacity, int live, long bytesEach) {}

    /// Counts by [PutOutcome], each put once, and of writers that gave up.
    ///
    /// @param busy from a remote client, this includes foreign ones
    /// @param noRoom puts that ended with [PutOutcome#NO_ROOM]
    /// @param attemptsWithoutRoom times that room was sought and not found: a put that waits seeks it again and
    /// again, and may find it in the end
    /// @param declined puts of which the policy expected too little
    public record Puts(
            long reserved,
            long present,
            long busy,
            long noParent,
            long noRoom,
            long abandoned,
            long foreign,
            long attemptsWithoutRoom,
            long declined) {}

    /// Counts by [io.kvcache.core.event.EventKind].
    public record Removals(long evicted, long dropped, long replaced, long quota) {}

    /// Blocks asked for by `acquire` and found, over all namespaces.
    public double hitRatio() {
        long asked =
                namespaces.stream().mapToLong(NamespaceStats::blocksRequested).sum();
        long found = namespaces.stream().mapToLong(NamespaceStats::blocksFound).sum();
        return asked == 0 ? 0 : (double) found / asked;
    }
}
