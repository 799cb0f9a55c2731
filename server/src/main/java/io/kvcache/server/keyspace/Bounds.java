package io.kvcache.server.keyspace;

import java.util.concurrent.atomic.AtomicLong;

/// How large keys and values may be, and how many bytes of values may be on their way in at one time, whosever they
/// are.
///
/// **Threads.** Any.
public final class Bounds {

    private final int keyBytes;
    private final long valueBytes;
    private final long inFlightBytes;
    private final AtomicLong inFlight = new AtomicLong();

    /// @param keyBytes longest key, 1 to [Keyspace#MAX_KEY_BYTES]
    /// @param valueBytes largest value, 1 to [Keyspace#MAX_VALUE_BYTES]
    /// @param inFlightBytes of all values that are being written; a larger value may come when no other does
    public Bounds(int keyBytes, long valueBytes, long inFlightBytes) {
        this.keyBytes = keyBytes;
        this.valueBytes = valueBytes;
        this.inFlightBytes = inFlightBytes;
    }

    /// As large as the store takes them.
    public static Bounds none() {
        return new Bounds(Keyspace.MAX_KEY_BYTES, Keyspace.MAX_VALUE_BYTES, Long.MAX_VALUE);
    }

    /// Longest key.
    public int keyBytes() {
        return keyBytes;
    }

    /// Largest value.
    public long valueBytes() {
        return valueBytes;
    }

    /// Bytes of values that are being written now.
    public long inFlight() {
        return inFlight.get();
    }

    /// A value begins to come, or may not.
    boolean begin(long bytes) {
        long before = inFlight.getAndAdd(bytes);
        if (before > 0 && before > inFlightBytes - bytes) {
            inFlight.addAndGet(-bytes);
            return false;
        }
        return true;
    }

    /// It has come, or will not.
    void end(long bytes) {
        inFlight.addAndGet(-bytes);
    }
}
