package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// A block or object to be read.
///
/// @param address where it lies
/// @param bytes of it
/// @param checksum that they must have: CRC32C over the CRC32Cs of the 64 KiB chunks
/// @param pieces native memory at aligned addresses that is filled in order: whole pages, as many as the
///     bytes take
/// @param tag the caller's number, which comes back with the outcome
public record LogReadRequest(long address, int bytes, int checksum, List<MemorySegment> pieces, long tag) {

    public LogReadRequest {
        pieces = List.copyOf(pieces);
    }
}
