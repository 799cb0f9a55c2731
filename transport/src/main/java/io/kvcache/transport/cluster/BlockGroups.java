package io.kvcache.transport.cluster;

/// Cuts a chain into groups of adjacent blocks that grow fourfold. Each group lies on one server.
///
/// In tokens the groups are `[0, 128) [128, 512) [512, 2k) [2k, 8k) [8k, 16k) [16k, 24k)` and so on. In blocks of
/// `b` tokens, the first group has `u = max(1, 128 / b)` and the largest `c = max(u, 8192 / b)`, both quotients
/// rounded down to a power of two (0 stays 0).
///
/// **Why growing.** A chain grows at its end, so the key of a group can only depend on the group's first block.
/// All chains that share this block and part behind it put their groups on the same server. With growing groups,
/// what lies there behind the shared part is at most three times as long as the chain before it. Groups of one
/// size instead put half a group of *every* prompt with the same beginning on one server, however many there are.
/// The cap of 8k tokens spreads long prompts.
///
/// **Threads.** Immutable; any thread.
public final class BlockGroups {

    /// Largest tokens of a block, as in [io.kvcache.core.identity.BlockShape].
    private static final int MAX_BLOCK_TOKENS = 65_536;

    private static final int FIRST_TOKENS = 128;
    private static final int MAX_TOKENS = 8192;
    private static final int GROWTH = 4;

    private final int firstBlocks;
    private final int maxBlocks;

    private BlockGroups(int firstBlocks, int maxBlocks) {
        this.firstBlocks = firstBlocks;
        this.maxBlocks = maxBlocks;
    }

    /// Returns the groups of chains with blocks of this size.
    ///
    /// @param blockTokens tokens of a block, 1 to 65,536
    public static BlockGroups of(int blockTokens) {
        if (blockTokens < 1 || blockTokens > MAX_BLOCK_TOKENS) {
            throw new IllegalArgumentException(
                    "blockTokens = %s is out of range; allowed: 1 to %s".formatted(blockTokens, MAX_BLOCK_TOKENS));
        }
        int first = Math.max(1, Integer.highestOneBit(FIRST_TOKENS / blockTokens));
        return new BlockGroups(first, Math.max(first, Integer.highestOneBit(MAX_TOKENS / blockTokens)));
    }

    /// Returns the first block of the group that a block belongs to. Its key is the key of the group.
    ///
    /// @param block index in the whole chain, 0 and up
    public int start(int block) {
        if (block < 0) {
            throw new IllegalArgumentException("block = %s is out of range; allowed: 0 and up".formatted(block));
        }
        if (block >= maxBlocks) {
            return block & -maxBlocks;
        }
        if (block < firstBlocks) {
            return 0;
        }
        int log2 = Integer.SIZE - 1 - Integer.numberOfLeadingZeros(block / firstBlocks);
        return firstBlocks << (log2 & ~1); // the power of four: an even power of two
    }

    /// Returns the block after the last one of the group that a block belongs to.
    ///
    /// @param block index in the whole chain, 0 and up
    /// @param length blocks of the chain, which may end within the group
    public int end(int block, int length) {
        long start = start(block);
        long end;
        if (start >= maxBlocks) {
            end = start + maxBlocks;
        } else {
            end = start == 0 ? firstBlocks : Math.min(GROWTH * start, maxBlocks);
        }
        return (int) Math.min(length, end);
    }
}
