package io.kvcache.transport.peer;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/// Adjacent blocks of a chain that one peer keeps: blocks `[64 g, 64 g + 64)`.
///
/// A store keeps no block without the one before it. So that a peer need not have what is before a group,
/// a group is a chain of its own there: its first block has none before it, and each is called by its own
/// key, which stands for everything before it, as an engine's key is. That is in a namespace of its own, so
/// that a group never meets the same blocks of a client that puts whole chains.
///
/// @param first block of the whole chain that is its first
/// @param chain as the peer knows it, from the first block on
/// @param key of the first block: decides on the peer
record BlockGroup(int first, BlockChain chain, BlockKey key) {

    static final int BLOCKS = 64;

    private static final String MARK = "groups of 64";

    /// Returns the namespace in which peers keep the groups of a namespace.
    static Namespace namespace(Namespace of) {
        String layout = of.layout();
        return of.toBuilder()
                .layout(layout.isEmpty() ? MARK : layout + ", " + MARK)
                .build();
    }

    /// The group that a block is in, up to another block.
    ///
    /// @param end block after its last, in the same group
    static BlockGroup of(BlockChain chain, int block, int end) {
        int first = block / BLOCKS * BLOCKS;
        List<byte[]> keys = new ArrayList<>();
        for (int index = first; index < end; index++) {
            keys.add(ByteBuffer.allocate(BlockKey.BYTES)
                    .putLong(chain.keyHi(index))
                    .putLong(chain.keyLo(index))
                    .array());
        }
        return new BlockGroup(first, BlockChain.ofEngineKeys(namespace(chain.namespace()), keys), chain.key(first));
    }

    /// Block after the last one of the group that a block is in, in a chain of so many.
    static int end(int block, int length) {
        return Math.min(length, (block / BLOCKS + 1) * BLOCKS);
    }
}
