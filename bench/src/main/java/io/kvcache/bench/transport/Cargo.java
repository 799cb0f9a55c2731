package io.kvcache.bench.transport;

/// What is moved.
///
/// @param operation there or here, and how
/// @param bytes of a block
/// @param inFlight threads that each do one operation at a time
public record Cargo(Operation operation, int bytes, int inFlight) {

    /// Bytes of one move.
    long moveBytes() {
        return (long) operation.blocks() * bytes;
    }
}
