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
    private volatile long lastUse;
    private long orderedBy;
    private volatile long protectedUntil;
    private volatile boolean isProtected;
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

    boolean isExpired(long nowMillis) {
        long at = expiresAtMillis;
        return at != 0 && at <= nowMillis;
    }

    /// The number of its last use, as the quota counts them.
    long lastUse() {
        return lastUse;
    }

    void lastUse(long number) {
        lastUse = number;
    }

    /// The use by which it stands in the quota's order; guarded by the quota.
    long orderedBy() {
        return orderedBy;
    }

    void orderedBy(long number) {
        orderedBy = number;
    }

    /// The quota takes others before it for a while.
    ///
    /// @param nanos of the store's clock
    void protectUntil(long nanos) {
        protectedUntil = nanos;
        isProtected = true;
    }

    boolean isProtected(long nanos) {
        return isProtected && protectedUntil - nanos > 0;
    }

    /// Whether it was seen together with its other half.
    boolean isPaired() {
        return paired;
    }

    void markPaired() {
        paired = true;
    }
}
