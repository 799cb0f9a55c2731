package io.kvcache.gpu.engine;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.stream.IntStream;

/// The pool of the engines in these tests: two layers, each in a region of its own, `[side][page][piece]`,
/// two pages to a block.
final class TwoLayerPool {

    static final String NAME = "small model";
    static final int BLOCK_TOKENS = 16;
    static final Namespace SPACE = Namespace.of("m", BlockShape.kv(2, 2, 64, BLOCK_TOKENS, Dtype.BF16));
    static final int LAYERS = 2;
    static final int SIDES = 2;
    static final int PAGES = 40;
    static final int PIECE = 2048;
    static final int PAGES_PER_BLOCK = 2;
    static final int BLOCK_BYTES = LAYERS * SIDES * PAGES_PER_BLOCK * PIECE;
    static final long LAYER_BYTES = (long) SIDES * PAGES * PIECE;

    /// Where in its region a layer begins.
    static final long OFFSET = 4096;

    private TwoLayerPool() {}

    /// What a layer has before anything is stored.
    static MemorySegment content(Arena arena, int layer) {
        MemorySegment content = arena.allocate(LAYER_BYTES, 8);
        new BlockContent(layer + 7).fill(content);
        return content;
    }

    /// What a block of these pages has, given all of each layer.
    static MemorySegment block(Arena arena, MemorySegment[] layers, int... pages) {
        MemorySegment block = arena.allocate(BLOCK_BYTES, 8);
        long at = 0;
        for (MemorySegment layer : layers) {
            for (int side = 0; side < SIDES; side++) {
                for (int page : pages) {
                    MemorySegment.copy(layer, ((long) side * PAGES + page) * PIECE, block, at, PIECE);
                    at += PIECE;
                }
            }
        }
        return block;
    }

    static int[] tokens(int blocks) {
        return IntStream.range(0, blocks * BLOCK_TOKENS).map(i -> 3 * i + 1).toArray();
    }

    /// What is told of it.
    static ByteBuffer encodeLayers(int... regions) {
        ByteBuffer body =
                EngineClient.pool(NAME, LAYERS, SIDES, PAGES, PAGES_PER_BLOCK, (long) PAGES * PIECE, PIECE, PIECE);
        for (int region : regions) {
            body.putLong(region).putLong(OFFSET).putLong(LAYER_BYTES);
        }
        return body;
    }
}
