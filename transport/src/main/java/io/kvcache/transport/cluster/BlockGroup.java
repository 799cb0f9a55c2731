package io.kvcache.transport.cluster;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;

/// Adjacent blocks of a chain that lie on one server, as [BlockGroups] cuts them.
///
/// A store keeps a block only together with the blocks before it. On a server each group is a chain of its own, so
/// the server needs no other group. Groups lie in a namespace of their own, and their blocks have keys of that
/// namespace. So they never meet the same blocks of a client that puts whole chains.
///
/// @param first index of its first block in the whole chain
/// @param chain as the server knows it, from the first block on
/// @param key of its first block there: decides on the server
public record BlockGroup(int first, BlockChain chain, BlockKey key) {

    /// Other groups need another mark: a server must not see one block with two parents.
    private static final String MARK = "fourfold groups";

    /// Returns the namespace in which servers keep the groups of a namespace.
    ///
    /// @throws IllegalArgumentException when the layout's text leaves no room for what marks groups
    public static Namespace namespace(Namespace of) {
        requireBlocksAlone(of);
        String layout = of.layout();
        return of.toBuilder()
                .layout(layout.isEmpty() ? MARK : layout + ", " + MARK)
                .build();
    }

    /// Refuses windows and states: a match of several servers does not look for them.
    ///
    /// @throws IllegalArgumentException when the namespace has any
    public static void requireBlocksAlone(Namespace namespace) {
        if (!namespace.groups().isEmpty()) {
            throw new IllegalArgumentException(
                    "%s has parts of kind %s; allowed over several servers or below a store: FULL"
                            .formatted(namespace, namespace.groups().getFirst().kind()));
        }
    }

    /// Returns whether a namespace holds groups.
    public static boolean isGroups(Namespace namespace) {
        return namespace.layout().endsWith(MARK);
    }

    /// Returns the group of a block, cut at the end of the chain.
    ///
    /// @param block index in the chain
    public static BlockGroup of(BlockChain chain, int block) {
        return of(chain, block, namespace(chain.namespace()));
    }

    /// Returns the group of a block, cut at the end of the chain.
    ///
    /// @param block index in the chain
    /// @param in [#namespace] of the chain's namespace, which takes a hash to make
    public static BlockGroup of(BlockChain chain, int block, Namespace in) {
        BlockGroups groups = BlockGroups.of(chain.blockTokens());
        int first = groups.start(block);
        BlockChain group = chain.section(in, first, groups.end(block, chain.length()));
        return new BlockGroup(first, group, group.key(0));
    }

    /// Returns the block behind the last one of this group.
    public int end() {
        return first + chain.length();
    }

    /// Returns the index behind the last block of a block's group, or the length of the chain if that is less.
    ///
    /// @param block index in the chain
    public static int end(BlockChain chain, int block) {
        return BlockGroups.of(chain.blockTokens()).end(block, chain.length());
    }
}
