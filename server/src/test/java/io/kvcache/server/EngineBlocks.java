package io.kvcache.server;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/// Blocks of one namespace in a server's store, by an engine's keys in hexadecimal.
///
/// @param parents by key, of the blocks that were put
record EngineBlocks(TieredKvCache cache, Namespace namespace, Map<String, String> parents) {

    /// Registers the namespace.
    static EngineBlocks register(CacheServer server, String tenant, String model, BlockShape shape) {
        Namespace namespace =
                Namespace.of(model, shape).toBuilder().tenant(tenant).build();
        server.cache().register(namespace);
        return new EngineBlocks(server.cache(), namespace, new HashMap<>());
    }

    private BlockChain chain(List<String> keys) {
        return BlockChain.ofEngineKeys(
                namespace, keys.stream().map(HexFormat.of()::parseHex).toList());
    }

    /// Puts a block; answers whether it was stored.
    ///
    /// @param parent key of the block before it; empty for a first one
    boolean put(String key, String parent) {
        parents.put(key, parent);
        Deque<String> path = new ArrayDeque<>();
        for (String at = key; !at.isEmpty(); at = parents.getOrDefault(at, "")) {
            path.addFirst(at);
        }
        BlockChain chain = chain(List.copyOf(path));
        try (BlockWriter writer = cache.put(chain, chain.length() - 1, 0, KvCache.NO_WAIT)) {
            return writer.outcome() == PutOutcome.RESERVED && writer.seal() == SealOutcome.SEALED;
        }
    }

    /// Drops a block and those below it.
    void drop(String key) {
        cache.dropBlock(namespace, chain(List.of(key)).key(0));
    }

    /// Looks a chain up and reads it; answers how many blocks were there.
    int read(List<String> keys, Duration timeout) {
        try (BlockTable table = cache.acquire(chain(keys), 0, timeout)) {
            return table.await(table.blocks(), timeout);
        }
    }
}
