package io.kvcache.core.hash;

import java.security.DigestException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/// The digest behind every key. Every Java platform must have SHA-256, so its absence is a bug, not an outcome.
public final class Sha256 {

    /// Bytes of a digest.
    public static final int BYTES = 32;

    private Sha256() {}

    /// A fresh digest, for one thread.
    public static MessageDigest newDigest() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("this Java platform lacks SHA-256", e);
        }
    }

    /// Ends the digest into `out` at `offset` without allocating; the digest is then as good as new.
    public static void finish(MessageDigest sha, byte[] out, int offset) {
        try {
            sha.digest(out, offset, BYTES);
        } catch (DigestException e) {
            throw new AssertionError("no room for a digest at %s of %s".formatted(offset, out.length), e);
        }
    }

    /// The last 8 of a digest's first bytes, big-endian; of fewer all.
    public static long low64(byte[] digest, int end) {
        long low = 0;
        for (int i = Math.max(0, end - Long.BYTES); i < end; i++) {
            low = (low << Byte.SIZE) | (digest[i] & 0xFF);
        }
        return low;
    }
}
