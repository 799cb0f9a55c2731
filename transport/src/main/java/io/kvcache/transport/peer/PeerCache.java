package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutSummary;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.remote.RemoteKvCache;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;

/// What is asked of a peer's cache; see [io.kvcache.core.KvCache] and [RemoteKvCache].
///
/// **Threads.** Any.
interface PeerCache extends AutoCloseable {

    /// Makes a namespace usable.
    ///
    /// @throws IllegalArgumentException when it is refused
    /// @throws java.io.UncheckedIOException when there is no answer
    void register(Namespace namespace);

    /// What it has, within a time; an empty table when it does not answer.
    BlockTable acquire(BlockChain chain, int from, long timeoutNanos);

    /// Stores blocks that it has room for now.
    PutSummary putAll(BlockChain chain, List<MemorySegment> blocks);

    /// Forgets blocks of a chain.
    ///
    /// @throws java.io.UncheckedIOException when there is no answer
    void drop(BlockChain chain, int from);

    /// Forgets all blocks of a namespace.
    ///
    /// @throws java.io.UncheckedIOException when there is no answer
    void drop(Namespace namespace);

    /// Whether it can be reached, as far as is known.
    boolean isConnected();

    /// Questions so far that were not answered.
    long failureCount();

    @Override
    void close();

    /// The cache of another process.
    record Remote(RemoteKvCache cache) implements PeerCache {

        @Override
        public void register(Namespace namespace) {
            cache.register(namespace);
        }

        @Override
        public BlockTable acquire(BlockChain chain, int from, long timeoutNanos) {
            return cache.acquire(chain, from, Duration.ofNanos(timeoutNanos));
        }

        @Override
        public PutSummary putAll(BlockChain chain, List<MemorySegment> blocks) {
            return cache.putAll(chain, 0, blocks, KvCache.NO_WAIT);
        }

        @Override
        public void drop(BlockChain chain, int from) {
            cache.drop(chain, from);
        }

        @Override
        public void drop(Namespace namespace) {
            cache.drop(namespace);
        }

        @Override
        public boolean isConnected() {
            return cache.remoteStats().connected();
        }

        @Override
        public long failureCount() {
            return cache.remoteStats().failed();
        }

        @Override
        public void close() {
            cache.close();
        }
    }
}
