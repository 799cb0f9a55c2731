package io.kvcache.bench.trace;

/// A line of a trace that could not be used.
///
/// @param number counted from 1
/// @param reason what is wrong with it, for people
public record MalformedLine(long number, String reason) {

    /// What a reader does about such a line.
    public enum Handling {
        /// Leave it out, report it and go on.
        SKIP,
        /// End with a [TraceFormatException].
        REFUSE
    }
}
