package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingBlockTable;
import io.kvcache.core.PutSummary;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.function.IntPredicate;

/// A peer's cache whose blocks come with a byte turned, those that a test chooses by their place in a group.
///
/// @param turned which of them
record CorruptingPeerCache(PeerCache cache, IntPredicate turned) implements PeerCache {

    @Override
    public void register(Namespace namespace) {
        cache.register(namespace);
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, long timeoutNanos) {
        return new CorruptingTable(cache.acquire(chain, from, timeoutNanos), turned);
    }

    @Override
    public int match(BlockChain chain, long timeoutNanos) {
        return cache.match(chain, timeoutNanos);
    }

    @Override
    public void forget(BlockChain chain) {
        cache.forget(chain);
    }

    @Override
    public PutSummary putAll(BlockChain chain, List<MemorySegment> blocks) {
        return cache.putAll(chain, blocks);
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
    public long lifeSigns() {
        return cache.lifeSigns();
    }

    @Override
    public void requestLifeSign() {
        cache.requestLifeSign();
    }

    @Override
    public long failureCount() {
        return cache.failureCount();
    }

    @Override
    public void close() {
        cache.close();
    }

    /// The checksum is the right one, and so the bytes are not its own.
    static final class CorruptingTable extends ForwardingBlockTable {

        private final IntPredicate turned;

        CorruptingTable(BlockTable table, IntPredicate turned) {
            super(table);
            this.turned = turned;
        }

        @Override
        public MemorySegment segment(int index) {
            MemorySegment right = delegate().segment(index);
            if (!turned.test(index)) {
                return right;
            }
            MemorySegment other = MemorySegment.ofArray(right.toArray(ValueLayout.JAVA_BYTE));
            long at = other.byteSize() / 2;
            other.set(ValueLayout.JAVA_BYTE, at, (byte) ~other.get(ValueLayout.JAVA_BYTE, at));
            return other;
        }

        @Override
        public void copyTo(int index, MemorySegment target) {
            MemorySegment block = segment(index);
            MemorySegment.copy(block, 0, target, 0, block.byteSize());
        }
    }
}
