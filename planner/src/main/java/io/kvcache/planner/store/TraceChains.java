package io.kvcache.planner.store;

import io.kvcache.core.BlockTable;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.planner.replay.PrefixForest;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/// A trace's requests as chains of blocks with real bytes, which are a pure function of their keys.
public final class TraceChains {

    /// Largest head dimension and largest block, in tokens.
    private static final int MAX_PER_AXIS = 65_536;

    private final PrefixForest forest;
    private final Namespace namespace;

    public TraceChains(PrefixForest forest, int blockBytes) {
        this(forest, Namespace.of("replay", shapeOf(blockBytes, forest.blockTokens())));
    }

    /// @param namespace whose blocks stand for those of the trace
    public TraceChains(PrefixForest forest, Namespace namespace) {
        this.forest = forest;
        this.namespace = namespace;
    }

    /// Some shape of exactly this size and, if there is one, with so many tokens: what a block costs goes by how
    /// many come before it.
    private static BlockShape shapeOf(int bytes, int tokens) {
        boolean exact = bytes % tokens == 0 && tokens <= MAX_PER_AXIS && bytes / tokens <= MAX_PER_AXIS;
        return exact ? BlockShape.mla(1, bytes / tokens, tokens, Dtype.INT8) : shapeOf(bytes);
    }

    /// Some shape of exactly this size; the store does not care which.
    ///
    /// @throws IllegalArgumentException when there is none, as for a large prime
    public static BlockShape shapeOf(int bytes) {
        for (int dim = Math.min(MAX_PER_AXIS, bytes); dim > 0; dim--) {
            if (bytes % dim == 0 && bytes / dim <= MAX_PER_AXIS) {
                return BlockShape.mla(1, dim, bytes / dim, Dtype.INT8);
            }
        }
        throw new IllegalArgumentException(
                "no block shape has exactly " + bytes + " bytes; a multiple of 4,096 always works");
    }

    public Namespace namespace() {
        return namespace;
    }

    public BlockChain chainOf(int request) {
        List<byte[]> keys = new ArrayList<>();
        for (int i = 0; i < forest.storedBlocks(request); i++) {
            keys.add(Integer.toString(forest.node(request, i)).getBytes(StandardCharsets.US_ASCII));
        }
        return BlockChain.ofEngineKeys(namespace, keys);
    }

    /// Puts a block's bytes where they belong.
    public static void fill(BlockChain chain, int index, MemorySegment slot) {
        BlockContent.of(chain.keyHi(index), chain.keyLo(index)).fill(slot);
    }

    /// Returns whether the bytes are those of the block.
    public static boolean matches(BlockChain chain, int index, MemorySegment bytes) {
        return BlockContent.of(chain.keyHi(index), chain.keyLo(index)).mismatch(bytes) < 0;
    }

    /// How many of a table's blocks, which begin with the chain's first, have other bytes.
    public static int countWrong(BlockTable table, BlockChain chain, int blocks) {
        int wrong = 0;
        for (int i = 0; i < blocks; i++) {
            wrong += matches(chain, i, table.segment(i)) ? 0 : 1;
        }
        return wrong;
    }
}
