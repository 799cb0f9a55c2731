package io.kvcache.tiers.options;

/// Action on a device that holds something other than a disk tier of this format and size.
public enum OnIncompatible {
    /// The device is left alone, and nothing is stored there.
    REFUSE,
    /// It is formatted, and its contents are lost.
    DISCARD
}
