package io.kvcache.transport.net;

import java.io.IOException;

/// Opens connections to one peer. The seam between the client and the network.
@FunctionalInterface
public interface Connector {

    /// Opens a connection.
    ///
    /// @param handler hears what comes in, on the thread that pumps
    /// @param timeoutNanos the longest wait
    /// @throws IOException when the peer cannot be reached in time
    FrameConnection connect(FrameHandler handler, long timeoutNanos) throws IOException;

    /// Makes the connectors of addresses `aeron:…`, in a module of its own that `ServiceLoader` finds.
    interface Provider {

        /// Returns a connector to an address. Opens nothing yet.
        ///
        /// @throws IllegalArgumentException when the text is not an address
        /// @throws IllegalStateException when this JVM lacks a flag that the carrier needs
        Connector connector(String address);
    }
}
