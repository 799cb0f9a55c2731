package io.kvcache.core.store;

import io.kvcache.core.identity.BlockKey;
import org.jspecify.annotations.Nullable;

/// An object that room is wanted for.
///
/// @param after the object that its readers take before it; null for the first, and where nobody knows
/// @param bytes of value and key
public record ObjectSpec(BlockKey key, @Nullable BlockKey after, int bytes) {}
