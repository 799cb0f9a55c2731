package io.kvcache.server.keyspace;

import io.kvcache.core.identity.BlockKey;
import org.jspecify.annotations.Nullable;

/// What the index knows of one key.
final class KeyEntry {

    private final Key key;
    private final BlockKey hash;
    private final long bytes;
    private volatile long expiresAtMillis;
    private volatile boolean paired;
    private volatile long usedAt;
    private long placedAt;
    private volatile long sparedUntil;
    private volatile boolean spared;
    private @Nullable KeyEntry next;

    KeyEntry(Key key, BlockKey hash, long bytes, long expiresAtMillis) {
        this.key = key;
        this.hash = hash;
        this.bytes = bytes;
        this.expiresAtMillis = expiresAtMillis;
    }

    Key key() {
        return key;
    }

    /// The name that the store knows it by.
    BlockKey hash() {
        return hash;
    }

    /// The entry after it in its bucket; guarded by its shard of the index.
    @Nullable
    KeyEntry next() {
        return next;
    }

    void next(@Nullable KeyEntry after) {
        next = after;
    }

    /// Size of the value.
    long bytes() {
        return bytes;
    }

    /// Milliseconds since the epoch, or 0 for never.
    long expiresAtMillis() {
        return expiresAtMillis;
    }

    void expiresAtMillis(long at) {
        expiresAtMillis = at;
    }

    boolean expired(long nowMillis) {
        long at = expiresAtMillis;
        return at != 0 && at <= nowMillis;
    }

    /// The number of its last use, as the quota counts them.
    long usedAt() {
        return usedAt;
    }

    void usedAt(long number) {
        usedAt = number;
    }

    /// The use by which it stands in the quota's order; guarded by the quota.
    long placedAt() {
        return placedAt;
    }

    void placedAt(long number) {
        placedAt = number;
    }

    /// The quota takes others before it for a while.
    ///
    /// @param nanos of the store's clock
    void sparedUntil(long nanos) {
        sparedUntil = nanos;
        spared = true;
    }

    boolean isSpared(long nanos) {
        return spared && sparedUntil - nanos > 0;
    }

    /// Whether it was seen together with its other half.
    boolean paired() {
        return paired;
    }

    void pair() {
        paired = true;
    }
}
