package io.kvcache.tiers.disk;

/// What bytes are written for.
public enum WriteKind {
    /// Blocks and objects that were appended.
    BLOCK,
    /// Blocks and objects that were kept when their region was reclaimed.
    REWRITE,
    /// Heads of groups.
    HEAD,
    /// Trailers of closed regions.
    TRAILER,
    /// Footers of free regions.
    FREE_FOOTER,
    /// Copies of the superblock.
    SUPERBLOCK
}
