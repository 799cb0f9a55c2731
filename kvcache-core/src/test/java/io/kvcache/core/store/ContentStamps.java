package io.kvcache.core.store;

import io.kvcache.core.check.BlockContent;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// A few bytes of a block's content at its start, at its end and once a MiB between: what a test can afford
/// to write a million times. Whoever has the slot of another finds the wrong stamp.
final class ContentStamps {

    private static final long EVERY = 1 << 20;
    private static final long BYTES = 64;

    private ContentStamps() {}

    static void write(BlockContent content, List<MemorySegment> pieces) {
        long start = 0;
        for (MemorySegment piece : pieces) {
            for (long at = 0; at < piece.byteSize(); at += EVERY) {
                content.fill(start + at, stamp(piece, at));
            }
            content.fill(start + lastAt(piece), stamp(piece, lastAt(piece)));
            start += piece.byteSize();
        }
    }

    static void require(BlockContent content, List<MemorySegment> pieces) {
        long start = 0;
        for (MemorySegment piece : pieces) {
            for (long at = 0; at < piece.byteSize(); at += EVERY) {
                content.requireEqual(start + at, stamp(piece, at));
            }
            content.requireEqual(start + lastAt(piece), stamp(piece, lastAt(piece)));
            start += piece.byteSize();
        }
    }

    private static MemorySegment stamp(MemorySegment piece, long at) {
        return piece.asSlice(at, Math.min(BYTES, piece.byteSize() - at));
    }

    private static long lastAt(MemorySegment piece) {
        return Math.max(0, piece.byteSize() - BYTES);
    }
}
