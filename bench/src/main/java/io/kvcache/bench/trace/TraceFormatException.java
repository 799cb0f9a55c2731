package io.kvcache.bench.trace;

import java.io.IOException;

/// A trace cannot be read as one; the message names the file, the line and the reason.
public final class TraceFormatException extends IOException {

    private static final long serialVersionUID = 1;

    /// @param message for people
    public TraceFormatException(String message) {
        super(message);
    }
}
