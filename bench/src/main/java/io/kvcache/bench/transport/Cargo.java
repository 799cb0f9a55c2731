package io.kvcache.bench.transport;

/// What is moved.
///
/// @param put there, else got from there
/// @param bytes of a block
/// @param inFlight threads that move one block at a time
public record Cargo(boolean put, int bytes, int inFlight) {

    /// The operation in one word.
    public String operation() {
        return put ? "put" : "acquire";
    }
}
