package io.kvcache.transport.wire;

import java.security.MessageDigest;
import java.security.SecureRandom;

/// Bytes that must stay secret: shown in no message, compared in a time that tells nothing.
///
/// Immutable; [#bytes()] is a copy.
public final class Secret {

    /// Bytes of the shortest secret that two sides may share: random, it cannot be guessed.
    public static final int MIN_SHARED_BYTES = 16;

    private static final SecureRandom RANDOM = new SecureRandom();

    private final byte[] bytes;

    public Secret(byte[] bytes) {
        this.bytes = bytes.clone();
    }

    /// As many random bytes.
    public static Secret random(int count) {
        byte[] bytes = new byte[count];
        RANDOM.nextBytes(bytes);
        return new Secret(bytes);
    }

    /// As many zeros, where nothing is to be kept secret.
    public static Secret zeros(int count) {
        return new Secret(new byte[count]);
    }

    public byte[] bytes() {
        return bytes.clone();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Secret that && MessageDigest.isEqual(bytes, that.bytes);
    }

    @Override
    public int hashCode() {
        return bytes.length;
    }

    @Override
    public String toString() {
        return "(hidden)";
    }
}
