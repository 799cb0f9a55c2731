package io.kvcache.transport.peer;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/// Adjacent blocks of a chain that one peer keeps: blocks `[64 g, 64 g + 64)`.
///
/// A store keeps a block only together with the blocks before it. At a peer each group is a chain of its own, so
/// the peer needs no other group. Its blocks are named by their keys, as blocks of engine keys are, since a key
/// covers all tokens before it. Groups lie in a namespace of their own. There they never meet the same blocks of a
/// client that puts whole chains.
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

    /// Returns the group of a block, cut at an end block.
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

    /// Returns the end of the group of a block, in a chain of this length.
    static int end(int block, int length) {
        return Math.min(length, (block / BLOCKS + 1) * BLOCKS);
    }
}
