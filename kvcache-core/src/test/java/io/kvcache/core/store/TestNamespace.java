package io.kvcache.core.store;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/// A registered namespace of blocks of one size, and the chains that a test uses in it: families of chains
/// that share their first blocks.
///
/// @param chains two of each family, which agree in the first half of their blocks
record TestNamespace(NamespaceEntry entry, List<BlockChain> chains) {

    private static final int BLOCK_TOKENS = 16;

    /// The sizes that tests use, with the blocks of a chain: one that spans slabs is seldom long.
    static final List<TestNamespace.Size> SIZES = List.of(
            new Size("4 KiB", 1, 64, 24),
            new Size("64 KiB", 1, 1024, 20),
            new Size("1 MiB", 16, 1024, 12),
            new Size("20 MiB", 320, 1024, 4),
            new Size("40 MiB", 640, 1024, 3));

    /// @param rowElements elements of one plane of one layer of one token, two bytes each
    record Size(String name, int layers, int rowElements, int blocks) {

        Namespace namespace() {
            return Namespace.of("blocks of " + name, BlockShape.kv(layers, 1, rowElements, BLOCK_TOKENS, Dtype.BF16));
        }
    }

    static TestNamespace register(HostStore store, Size size, int families) {
        return register(store, size.namespace(), size.blocks, families);
    }

    static TestNamespace register(HostStore store, Namespace namespace, int blocks, int families) {
        NamespaceEntry entry = store.register(namespace);
        List<BlockChain> chains = new ArrayList<>();
        for (int family = 0; family < families; family++) {
            chains.add(chain(entry, family, 0, blocks));
            chains.add(chain(entry, family, 1, blocks));
        }
        return new TestNamespace(entry, List.copyOf(chains));
    }

    private static BlockChain chain(NamespaceEntry entry, int family, int fork, int blocks) {
        int half = blocks / 2 * BLOCK_TOKENS;
        int[] tokens = IntStream.range(0, blocks * BLOCK_TOKENS)
                .map(i -> family * 1_000_000 + (i < half ? 0 : fork * 500_000) + i)
                .toArray();
        return BlockChain.of(entry.namespace(), tokens);
    }

    long blockBytes() {
        return entry.blockBytes();
    }
}
