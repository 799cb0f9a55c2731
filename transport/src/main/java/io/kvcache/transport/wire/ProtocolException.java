package io.kvcache.transport.wire;

/// The peer does not speak the protocol: the connection is closed, and nothing else happens.
public final class ProtocolException extends Exception {

    private static final long serialVersionUID = 1L;

    /// @param message names the field, the value and what is allowed
    public ProtocolException(String message) {
        super(message);
    }
}
