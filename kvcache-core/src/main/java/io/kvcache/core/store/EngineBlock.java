package io.kvcache.core.store;

import io.kvcache.core.identity.BlockKey;
import org.jspecify.annotations.Nullable;

/// A block that is named by its own key and that of the block before it, not by a whole chain.
///
/// @param parent null for a first block
/// @param engineHash low 64 bits of the engine's own hash
public record EngineBlock(BlockKey key, @Nullable BlockKey parent, long engineHash) {}
