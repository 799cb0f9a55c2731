package io.kvcache.core.contract;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.tier.TierBlock;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/// Blocks and objects for a tier, whose bytes follow from their keys.
///
/// @param arena of their memory
record TierTestBlocks(Arena arena) {

    static final Namespace BLOCKS = Namespace.of("tier", BlockShape.kv(2, 2, 64, 16, Dtype.BF16));
    static final Namespace THINGS = Namespace.objects("things", "tenant");
    static final int PAGE = 4096;

    private static final int PREFIX_BYTES = 64;
    private static final int CHAIN = 10;

    static BlockContent content(long key) {
        return BlockContent.of(key, ~key);
    }

    /// Block `key` of a chain in which each has the next lower key as its parent, 10 blocks a chain.
    TierBlock block(long key, int namespaceId, int bytes) {
        boolean child = key % CHAIN != 0;
        return new TierBlock(
                key,
                ~key,
                child ? key - 1 : 0,
                child ? -key : 0,
                namespaceId,
                false,
                (int) (key % CHAIN),
                bytes,
                checksum(content(key), bytes),
                key * 3);
    }

    TierBlock object(long key, int version, int namespaceId, int bytes) {
        return new TierBlock(
                key,
                ~key,
                0,
                0,
                namespaceId,
                true,
                0,
                bytes,
                checksum(content(key).withVersion(version), bytes),
                0);
    }

    private int checksum(BlockContent content, int bytes) {
        return ChunkedCrc.of(filled(content, bytes).asSlice(0, bytes));
    }

    /// The same block as a store that numbers namespaces otherwise calls it.
    static TierBlock inNamespace(TierBlock block, int id) {
        return new TierBlock(
                block.keyHi(),
                block.keyLo(),
                block.parentHi(),
                block.parentLo(),
                id,
                block.isObject(),
                block.depth(),
                block.bytes(),
                block.checksum(),
                block.engineHash());
    }

    /// Whole pages that begin with the content.
    MemorySegment filled(BlockContent content, int bytes) {
        MemorySegment pages = memory(bytes);
        content.fill(pages.asSlice(0, bytes));
        return pages;
    }

    /// Whole pages for so many bytes.
    MemorySegment memory(int bytes) {
        return arena.allocate((bytes + PAGE - 1L) & -PAGE, PAGE);
    }

    /// In one piece, or in two when there is more than one page.
    static List<MemorySegment> pieces(MemorySegment pages, boolean split) {
        return split && pages.byteSize() > PAGE ? List.of(pages.asSlice(0, PAGE), pages.asSlice(PAGE)) : List.of(pages);
    }

    /// The first bytes of a block.
    static byte[] prefix(long key) {
        return content(key).toHeapSegment(PREFIX_BYTES).toArray(ValueLayout.JAVA_BYTE);
    }
}
