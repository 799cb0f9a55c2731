package io.kvcache.core.event;

/// Tiers that can hold bytes, fastest first.
public enum TierKind {
    DEVICE,
    HOST,
    DISK,
    REMOTE
}
