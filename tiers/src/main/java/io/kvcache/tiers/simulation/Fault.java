package io.kvcache.tiers.simulation;

/// What a [FaultyDevice] does to an operation.
public enum Fault {
    /// A read ends with EIO, and its target is full of junk.
    READ_ERROR,
    /// A read is done, and one bit of it is wrong.
    BIT_FLIP,
    /// A write ends with EIO, and was done in part.
    WRITE_ERROR,
    /// A write is done, but only a first part of it arrived.
    TORN_WRITE,
    /// A write is done, but went elsewhere.
    MISDIRECTED_WRITE,
    /// A write is done, but nothing arrived.
    LOST_WRITE,
    /// A write ends with ENOSPC, and nothing arrived.
    NO_SPACE,
    /// A sync ends with EIO, and nothing became durable.
    SYNC_ERROR,
    /// An operation does not end until [FaultyDevice#resume].
    HANG
}
