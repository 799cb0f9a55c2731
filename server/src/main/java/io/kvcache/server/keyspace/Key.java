package io.kvcache.server.keyspace;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// A key: bytes, not text. The array belongs to the key from then on.
final class Key {

    private final byte[] bytes;
    private final int hash;
    private @Nullable BlockKey digest;

    Key(byte[] bytes) {
        this.bytes = bytes;
        hash = Arrays.hashCode(bytes);
    }

    byte[] bytes() {
        return bytes;
    }

    /// The name that the store of a keyspace knows it by. A key belongs to one keyspace.
    BlockKey digest(Namespace namespace) {
        BlockKey known = digest; // Two threads may both make it; they make the same.
        if (known == null) {
            known = BlockKey.ofObject(namespace, bytes);
            digest = known;
        }
        return known;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Key that && Arrays.equals(bytes, that.bytes);
    }

    @Override
    public int hashCode() {
        return hash;
    }

    /// The key as Latin-1, for messages.
    @Override
    public String toString() {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }
}
