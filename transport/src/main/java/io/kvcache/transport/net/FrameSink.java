package io.kvcache.transport.net;

import io.kvcache.transport.wire.OutboundFrame;

/// Takes frames out to one peer.
///
/// **Threads.** Any; frames are never mixed.
public interface FrameSink {

    /// Sends a frame, in order, and returns when its bytes need to stay no longer. Waits while the peer does not
    /// take them; the thread that watches the connection ends that by closing it.
    ///
    /// @return false when the connection is closed, or closed meanwhile
    boolean send(OutboundFrame frame);

    /// Closes the connection, from any thread; what is being sent or waited for ends. Does nothing a
    /// second time.
    void close(DisconnectReason reason);

    /// Returns the peer's address without a port, for limits by address. Empty if it is unknown, or if all peers
    /// share one. Also after the connection was closed.
    default String peerAddress() {
        return "";
    }
}
