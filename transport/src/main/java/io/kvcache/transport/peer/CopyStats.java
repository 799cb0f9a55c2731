package io.kvcache.transport.peer;

/// What the copies of groups do for a client of a cluster.
///
/// @param reads groups of which a copy served at least a part
/// @param missing times that a copy was asked for blocks that it lacked and the owner had
/// @param requested copies that servers were asked to make, those that were missing among them
public record CopyStats(long reads, long missing, long requested) {}
