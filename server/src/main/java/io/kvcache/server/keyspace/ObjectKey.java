package io.kvcache.server.keyspace;

import io.kvcache.core.engine.EngineValueKey;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// The key of a value: bytes, not text, with the digest that the store knows it by. Made once for each request, so
/// that no later step digests the key again.
///
/// **Halves.** LMCache's Redis connectors store one thing under two keys: `<key>metadata` and `<key>kv_bytes`. One
/// without the other is worse than none: metadata alone promises bytes that are gone. The suffixes are glued on, or
/// stand behind a colon, which makes no difference here. Only keys of LMCache's form ([ChunkKey]) are halves: other
/// clients have keys with these endings that have nothing to do with each other.
///
/// @param bytes belong to the key; not copied, not to be changed
/// @param digest the name in the store of the one keyspace that the key belongs to
@SuppressWarnings("ArrayRecordComponent") // equals and hashCode go by the bytes
record ObjectKey(byte[] bytes, BlockKey digest) {

    static ObjectKey of(Namespace namespace, byte[] bytes) {
        return new ObjectKey(bytes, BlockKey.ofObject(namespace, bytes));
    }

    /// The key of the other half, or null when this key is no half.
    ///
    /// @param namespace of this key
    @Nullable
    ObjectKey otherHalf(Namespace namespace) {
        byte[] other = otherHalf(bytes);
        return other == null ? null : of(namespace, other);
    }

    /// As [#otherHalf(Namespace)], of a key's bytes.
    static byte @Nullable [] otherHalf(byte[] key) {
        return isHalf(key) ? EngineValueKey.otherHalf(key) : null;
    }

    /// Returns whether a key is of one of the two halves.
    static boolean isHalf(byte[] key) {
        return EngineValueKey.hasSuffix(key) && ChunkKey.isChunk(key);
    }

    /// Returns a key without such a suffix: the same for both halves of a value.
    static byte[] base(byte[] key) {
        int length = EngineValueKey.baseLength(key);
        return length == key.length ? key : Arrays.copyOf(key, length);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ObjectKey that && digest.equals(that.digest) && Arrays.equals(bytes, that.bytes);
    }

    @Override
    public int hashCode() {
        return digest.hashCode();
    }

    /// The key as Latin-1, for messages.
    @Override
    public String toString() {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }
}
