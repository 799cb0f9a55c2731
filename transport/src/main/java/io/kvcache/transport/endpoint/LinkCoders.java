package io.kvcache.transport.endpoint;

import io.kvcache.core.codec.BlockCodec;
import io.kvcache.core.codec.BlockCodec.CodedBlock;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Coders of blocks on their way to clients behind slow links, for all connections: half as many as there are
/// processors. A block that finds none is sent as it is, as is one that does not code.
///
/// **Threads.** Any; a coder is its taker's.
final class LinkCoders {

    /// A larger block is sent as it is: a coder has memory for one.
    static final long MAX_BLOCK_BYTES = 64L << 20;

    private final Deque<LinkCoder> idle = new ArrayDeque<>();
    private int left = Math.max(1, Runtime.getRuntime().availableProcessors() / 2);

    /// Takes a coder, which the caller closes; null when all are taken, or blocks of this size are not coded.
    synchronized @Nullable LinkCoder acquire(long blockBytes) {
        if (left == 0 || blockBytes > MAX_BLOCK_BYTES) {
            return null;
        }
        left--;
        LinkCoder kept = idle.poll();
        return kept == null ? new LinkCoder() : kept;
    }

    private synchronized void giveBack(LinkCoder coder) {
        left++;
        idle.push(coder);
    }

    /// Codes one block after another.
    final class LinkCoder implements AutoCloseable {

        private final BlockCodec codec = new BlockCodec();
        private MemorySegment memory = MemorySegment.NULL;

        private LinkCoder() {}

        /// Returns the block coded, in memory that the next one takes; null when it is sent as it is.
        @Nullable
        CodedBlock encode(MemorySegment block) {
            int bytes = Math.toIntExact(block.byteSize());
            long needed = BlockCodec.encodeBytes(bytes);
            if (memory.byteSize() < needed) {
                memory = Arena.ofAuto().allocate(needed, Long.BYTES);
            }
            CodedBlock coded = codec.encode(List.of(block), bytes, memory.asSlice(0, needed));
            return coded == null || coded.bytes().byteSize() >= bytes ? null : coded;
        }

        @Override
        public void close() {
            giveBack(this);
        }
    }
}
