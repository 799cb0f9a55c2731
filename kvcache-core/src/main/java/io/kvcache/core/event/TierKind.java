package io.kvcache.core.event;

/// Where bytes can live, fastest first.
public enum TierKind {
    DEVICE,
    HOST,
    DISK,
    REMOTE
}
