package io.kvcache.transport.peer;

import io.kvcache.core.identity.Namespace;

/// A connection to another server that connects again by itself.
///
/// **Threads.** Any.
interface PeerConnection extends AutoCloseable {

    /// Makes a namespace usable.
    ///
    /// @throws IllegalArgumentException when the peer rejects it
    /// @throws java.io.UncheckedIOException when the peer does not answer
    void register(Namespace namespace);

    /// Returns whether the client believes the peer to be connected.
    boolean isConnected();

    /// Returns the number of failures so far: calls that the peer did not answer, and blocks that did not match their
    /// checksum on arrival.
    long failureCount();

    /// Returns a number that changes whenever the peer is heard.
    long lifeSigns();

    /// Asks the peer for a sign of life, without waiting for it.
    void requestLifeSign();

    @Override
    void close();
}
