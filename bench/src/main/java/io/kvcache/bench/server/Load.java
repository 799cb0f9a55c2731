package io.kvcache.bench.server;

/// What clients do.
///
/// @param write SET, else GET
/// @param bytes of a value
/// @param connections each with a thread and one request at a time
public record Load(boolean write, int bytes, int connections) {

    /// Keys that take half a GiB together, more than any cache of a processor.
    private static final long WORKING_SET = 512L << 20;

    int keys() {
        return (int) Math.max(8, WORKING_SET / bytes);
    }

    String operation() {
        return write ? "SET" : "GET";
    }
}
