package io.kvcache.server.keyspace;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// A key: bytes, not text. The array belongs to the key from then on.
final class Key {

    private final byte[] bytes;
    private final int hash;

    Key(byte[] bytes) {
        this.bytes = bytes;
        hash = Arrays.hashCode(bytes);
    }

    byte[] bytes() {
        return bytes;
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
