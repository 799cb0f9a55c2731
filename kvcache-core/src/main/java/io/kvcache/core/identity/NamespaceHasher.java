package io.kvcache.core.identity;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;

/// Feeds a namespace's fields to SHA-256 so that no two different namespaces feed the same bytes.
///
/// Every text goes in as its length (int32, big-endian) and its UTF-8 bytes, every number as int32 big-endian,
/// the parts after their count: the bytes can be read back in one way only. Constants go in by name, so that
/// reordering them in the source changes nothing.
final class NamespaceHasher {

    /// Changes with the encoding below, and with it every key of every store.
    private static final String TAG = "kvcache namespace v1";

    private final MessageDigest sha = Sha256.newDigest();
    private final ByteBuffer number = ByteBuffer.allocate(Integer.BYTES);

    NamespaceHasher() {
        text(TAG.getBytes(StandardCharsets.US_ASCII));
    }

    NamespaceHasher text(byte[] utf8) {
        number(utf8.length);
        sha.update(utf8);
        return this;
    }

    NamespaceHasher number(int value) {
        number.clear().putInt(value);
        sha.update(number.array());
        return this;
    }

    NamespaceHasher part(Part part) {
        BlockShape shape = part.shape();
        number(part.group()).number(part.rank()).constant(part.kind()).number(part.window());
        number(part.rotation().basePosition());
        number(shape.layers()).number(shape.planes()).number(shape.kvHeads()).number(shape.headDim());
        return number(shape.blockTokens()).constant(shape.dtype()).constant(shape.order());
    }

    byte[] finish() {
        return sha.digest();
    }

    private NamespaceHasher constant(Enum<?> constant) {
        return text(constant.name().getBytes(StandardCharsets.US_ASCII));
    }
}
