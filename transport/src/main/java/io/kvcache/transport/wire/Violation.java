package io.kvcache.transport.wire;

/// The peer does not speak the protocol: the connection is closed, and nothing else happens.
public final class Violation extends Exception {

    private static final long serialVersionUID = 1L;

    /// @param message names the field, the value and what is allowed
    public Violation(String message) {
        super(message);
    }
}
