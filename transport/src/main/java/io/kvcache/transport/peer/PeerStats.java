package io.kvcache.transport.peer;

/// Statistics of one peer.
///
/// @param name by which it was listed
/// @param reachable whether it is asked now
/// @param found blocks that it had
/// @param missed groups that it was asked for in vain
/// @param replicated blocks that it was given, or had already when they were offered
/// @param failures times that it did not answer in time, or sent bytes that did not match their checksum
public record PeerStats(String name, boolean reachable, long found, long missed, long replicated, long failures) {}
