package io.kvcache.gpu.engine;

import io.kvcache.core.identity.Namespace;
import io.kvcache.gpu.paging.PagedLayout;
import java.util.BitSet;

/// An engine's pool, and the namespace that its blocks belong to.
record EnginePagePool(PagedLayout layout, Namespace namespace) {

    EnginePagePool {
        long bytes = namespace.parts().getFirst().bytes();
        if (namespace.parts().size() != 1 || layout.blockBytes() != bytes) {
            throw new IllegalArgumentException("a pool whose pages make blocks of " + layout.blockBytes()
                    + " bytes; " + namespace.model() + " has blocks of " + bytes + " in "
                    + namespace.parts().size() + " parts, and it takes one part of that size");
        }
    }

    /// The pages of each block, out of those of all.
    ///
    /// @throws IllegalArgumentException unless each is one of the pool's, and comes once
    int[][] pagesByBlock(int[] pages, int blocks) {
        int each = layout.pagesPerBlock();
        EngineCodec.require(
                blocks >= 1 && pages.length == (long) blocks * each, "pages of " + blocks + " blocks", pages.length);
        BitSet seen = new BitSet();
        int[][] byBlock = new int[blocks][each];
        for (int i = 0; i < pages.length; i++) {
            layout.requirePage(pages[i]);
            if (seen.get(pages[i])) {
                throw new IllegalArgumentException("page " + pages[i] + " comes twice");
            }
            seen.set(pages[i]);
            byBlock[i / each][i % each] = pages[i];
        }
        return byBlock;
    }
}
