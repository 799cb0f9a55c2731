package io.kvcache.server.keyspace;

/// What can be said of a key without fetching its value.
///
/// @param bytes size of the value
/// @param expiresAtMillis milliseconds since the epoch, or 0 for never
public record KeyInfo(long bytes, long expiresAtMillis) {}
