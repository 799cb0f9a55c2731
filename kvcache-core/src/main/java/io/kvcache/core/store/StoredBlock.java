package io.kvcache.core.store;

import io.kvcache.core.identity.BlockKey;
import org.jspecify.annotations.Nullable;

/// A block that a store has, in any tier.
///
/// @param parent the block before it; null for a first one
public record StoredBlock(BlockKey key, @Nullable BlockKey parent) {}
