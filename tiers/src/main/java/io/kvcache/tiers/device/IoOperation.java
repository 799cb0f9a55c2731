package io.kvcache.tiers.device;

/// What a [BlockDevice] can be asked to do.
public enum IoOperation {
    READ,
    WRITE,
    SYNC,
    DISCARD
}
