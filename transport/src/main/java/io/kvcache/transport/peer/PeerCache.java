package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutSummary;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.client.RemoteKvCache;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;

/// Operations on a peer's cache; see [io.kvcache.core.KvCache] and [RemoteKvCache].
///
/// **Threads.** Any.
interface PeerCache extends PeerConnection {

    /// Acquires the blocks that the peer has, within a timeout. Returns an empty table when it does not answer.
    BlockTable acquire(BlockChain chain, int from, long timeoutNanos);

    /// Counts the leading blocks that [#acquire] with this timeout would bring; 0 when the peer does not answer.
    int match(BlockChain chain, long timeoutNanos);

    /// Tells the peer that a chain will not be asked for again. Does not fail.
    void forget(BlockChain chain);

    /// Stores blocks that it has room for now.
    PutSummary putAll(BlockChain chain, List<MemorySegment> blocks);

    /// Drops the blocks of a chain from an index on.
    ///
    /// @throws java.io.UncheckedIOException when the peer does not answer
    void drop(BlockChain chain, int from);

    /// Drops all blocks of a namespace.
    ///
    /// @throws java.io.UncheckedIOException when the peer does not answer
    void drop(Namespace namespace);

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
        public int match(BlockChain chain, long timeoutNanos) {
            return cache.match(chain, Duration.ofNanos(timeoutNanos)).blocks();
        }

        @Override
        public void forget(BlockChain chain) {
            cache.hint(new Hint.Forget(chain, 0));
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
            return cache.isConnected();
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
        public void close() {
            cache.close();
        }
    }
}
