package io.kvcache.server;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.EngineKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;

/// Blocks of one namespace in a server's store, by an engine's keys in hexadecimal.
record EngineBlocks(TieredKvCache cache, Namespace namespace) {

    /// Registers the namespace.
    static EngineBlocks register(CacheServer server, String tenant, String model, BlockShape shape) {
        Namespace namespace =
                Namespace.of(model, shape).toBuilder().tenant(tenant).build();
        server.cache().register(namespace);
        return new EngineBlocks(server.cache(), namespace);
    }

    private static EngineKey key(String digits) {
        return EngineKey.of(HexFormat.of().parseHex(digits));
    }

    /// Puts a block; answers whether it was stored.
    ///
    /// @param parent key of the block before it; empty for a first one
    boolean put(String key, String parent) {
        EngineKey before = parent.isEmpty() ? null : key(parent);
        try (BlockWriter writer = cache.put(namespace, key(key), before, KvCache.NO_WAIT)) {
            return writer.outcome() == PutOutcome.RESERVED && writer.seal() == SealOutcome.SEALED;
        }
    }

    /// Drops a block and those below it.
    void drop(String key) {
        cache.blocks(namespace).drop(key(key).toBlockKey(namespace));
    }

    /// Looks a chain up and reads it; answers how many blocks were there.
    int read(List<String> keys, Duration timeout) {
        List<byte[]> bytes = keys.stream().map(HexFormat.of()::parseHex).toList();
        try (BlockTable table = cache.acquire(BlockChain.ofEngineKeys(namespace, bytes), 0, timeout)) {
            return table.await(table.blocks(), timeout);
        }
    }
}
