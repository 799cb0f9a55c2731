package io.kvcache.bench.transport;

/// What is moved.
///
/// @param operation there or here, and how
/// @param bytes of a block
/// @param inFlight threads that each do one operation at a time
public record TransferSpec(TransferOperation operation, int bytes, int inFlight) {

    /// Bytes of one move.
    long transferBytes() {
        return (long) operation.blockCount() * bytes;
    }
}
