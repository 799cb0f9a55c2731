package io.kvcache.server.keyspace;

import io.kvcache.server.quota.ByteBudget;

/// How large keys and values may be, and how many bytes of values may be on their way in and out at one time.
///
/// **Threads.** Any.
public final class KeyspaceLimits {

    private final int keyBytes;
    private final long valueBytes;
    private final ByteBudget incoming;
    private final ByteBudget outgoing;

    /// @param keyBytes longest key, 1 to [Keyspace#MAX_KEY_BYTES]
    /// @param valueBytes largest value, 1 to [Keyspace#MAX_VALUE_BYTES]
    /// @param arriving values that are being written
    /// @param leaving values that are being read, and hold their memory until they are sent
    public KeyspaceLimits(int keyBytes, long valueBytes, ByteBudget arriving, ByteBudget leaving) {
        this.keyBytes = keyBytes;
        this.valueBytes = valueBytes;
        this.incoming = arriving;
        this.outgoing = leaving;
    }

    /// As large as the store takes them.
    public static KeyspaceLimits unlimited() {
        return new KeyspaceLimits(
                Keyspace.MAX_KEY_BYTES, Keyspace.MAX_VALUE_BYTES, ByteBudget.unlimited(), ByteBudget.unlimited());
    }

    /// Longest key.
    public int keyBytes() {
        return keyBytes;
    }

    /// Largest value.
    public long valueBytes() {
        return valueBytes;
    }

    /// Values that are being written.
    public ByteBudget incoming() {
        return incoming;
    }

    /// Values that are being read.
    public ByteBudget outgoing() {
        return outgoing;
    }
}
