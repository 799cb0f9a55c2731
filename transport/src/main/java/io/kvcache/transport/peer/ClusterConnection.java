package io.kvcache.transport.peer;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.DropMark;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/// A connection to one server of a cluster, of a client or of another server, that connects again by itself.
///
/// **Threads.** Any.
interface ClusterConnection extends AutoCloseable {

    /// Makes a namespace usable.
    ///
    /// @throws IllegalArgumentException when the server rejects it
    /// @throws java.io.UncheckedIOException when the server does not answer
    void register(Namespace namespace);

    /// Returns whether the client believes the server to be connected.
    boolean isConnected();

    /// Returns the number of failures so far: calls that the server did not answer, and blocks that did not
    /// match their checksum on arrival.
    long failureCount();

    /// Returns a number that changes whenever the server is heard.
    long lifeSigns();

    /// Asks the server for a sign of life, without waiting for it.
    void requestLifeSign();

    /// The server's cache.
    KvCache cache();

    /// Returns the server's view; see [RemoteKvCache#view].
    @Nullable
    ClusterView view(long knownDigest, Duration timeout);

    /// Drops blocks of a chain there, from an index on.
    ///
    /// @param mark the same at all servers
    int drop(BlockChain chain, int from, DropMark mark);

    /// Drops a namespace there.
    ///
    /// @param mark the same at all servers
    long drop(Namespace namespace, DropMark mark);

    /// Returns whether calls of reads send no message, as this process reads the server's memory.
    boolean isMemoryMapped();

    /// Returns the number of open tables, views and writers.
    int openHandles();

    @Override
    void close();

    /// The cache of another process.
    record Remote(RemoteKvCache cache) implements ClusterConnection {

        @Override
        public void register(Namespace namespace) {
            cache.register(namespace);
        }

        @Override
        public @Nullable ClusterView view(long knownDigest, Duration timeout) {
            return cache.view(knownDigest, timeout);
        }

        @Override
        public int drop(BlockChain chain, int from, DropMark mark) {
            return cache.drop(chain, from, mark);
        }

        @Override
        public long drop(Namespace namespace, DropMark mark) {
            return cache.drop(namespace, mark);
        }

        @Override
        public boolean isConnected() {
            return cache.isConnected();
        }

        @Override
        public boolean isMemoryMapped() {
            return cache.isMemoryMapped();
        }

        @Override
        public long failureCount() {
            return cache.failureCount();
        }

        @Override
        public long lifeSigns() {
            return cache.lifeSigns();
        }

        @Override
        public void requestLifeSign() {
            cache.requestLifeSign();
        }

        @Override
        public int openHandles() {
            return cache.openHandles();
        }

        @Override
        public void close() {
            cache.close();
        }
    }
}
