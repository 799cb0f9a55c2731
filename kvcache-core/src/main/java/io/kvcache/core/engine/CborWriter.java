package io.kvcache.core.engine;

import io.kvcache.core.hash.Sha256;
import io.kvcache.core.hash.Utf8;
import java.security.MessageDigest;
import java.util.Arrays;

/// Writes the few kinds of canonical CBOR (RFC 8949, section 4.2.1) that a block hash consists of: integers,
/// texts, byte strings, arrays and null, every length in its shortest form.
final class CborWriter {

    private static final int UNSIGNED = 0;
    private static final int NEGATIVE = 1;
    private static final int BYTES = 2;
    private static final int TEXT = 3;
    private static final int ARRAY = 4;
    private static final int NULL = 0xF6;

    /// Values up to this one sit in the head byte; longer ones follow it in 1, 2, 4 or 8 bytes.
    private static final int MAX_IN_HEAD = 23;

    /// Head byte and 8 bytes of value.
    private static final int MAX_HEAD_BYTES = 9;

    private final MessageDigest sha = Sha256.newDigest();
    private byte[] buffer = new byte[128];
    private int length;

    CborWriter integer(long value) {
        return value < 0 ? head(NEGATIVE, -1 - value) : head(UNSIGNED, value);
    }

    CborWriter text(String field, String value) {
        byte[] utf8 = Utf8.encode(field, value);
        return head(TEXT, utf8.length).raw(utf8);
    }

    CborWriter bytes(byte[] value) {
        return head(BYTES, value.length).raw(value);
    }

    /// The head of an array; its elements are the next `count` values written.
    CborWriter array(int count) {
        return head(ARRAY, count);
    }

    CborWriter nullValue() {
        reserve(1);
        buffer[length++] = (byte) NULL;
        return this;
    }

    /// All that was written so far.
    byte[] toBytes() {
        return Arrays.copyOf(buffer, length);
    }

    /// The SHA-256 digest of all that was written; the writer is empty afterwards.
    byte[] sha256() {
        sha.update(buffer, 0, length);
        length = 0;
        return sha.digest();
    }

    private CborWriter head(int major, long value) {
        reserve(MAX_HEAD_BYTES);
        int type = major << 5;
        if (value <= MAX_IN_HEAD) {
            buffer[length++] = (byte) (type | (int) value);
            return this;
        }
        int log2Bytes = value <= 0xFF ? 0 : value <= 0xFFFF ? 1 : value <= 0xFFFF_FFFFL ? 2 : 3;
        buffer[length++] = (byte) (type | (MAX_IN_HEAD + 1 + log2Bytes));
        for (int shift = (Byte.SIZE << log2Bytes) - Byte.SIZE; shift >= 0; shift -= Byte.SIZE) {
            buffer[length++] = (byte) (value >>> shift);
        }
        return this;
    }

    private CborWriter raw(byte[] value) {
        reserve(value.length);
        System.arraycopy(value, 0, buffer, length, value.length);
        length += value.length;
        return this;
    }

    private void reserve(int more) {
        if (buffer.length - length < more) {
            buffer = Arrays.copyOf(buffer, Math.max(2 * buffer.length, length + more));
        }
    }
}
