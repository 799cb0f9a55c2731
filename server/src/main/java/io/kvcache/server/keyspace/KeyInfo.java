package io.kvcache.server.keyspace;

/// What can be said of a key without fetching its value.
///
/// @param bytes size of the value
/// @param expiresAtMillis milliseconds since the epoch, or 0 for never
public record KeyInfo(long bytes, long expiresAtMillis) {

    /// Host memory that it takes, in slots of `page` bytes at the least.
    public long storedBytes(int keyBytes, long page) {
        return ValueTrailer.storedBytes(keyBytes, bytes, page);
    }
}
