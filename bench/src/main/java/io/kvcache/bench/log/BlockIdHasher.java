package io.kvcache.bench.log;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/// What stands for blocks of tokens in a trace: the first 63 bits of a SHA-256 over a salt, what
/// stands for the block before and the block's tokens.
///
/// So a block's id stands for everything before it too, and who does not have the salt cannot try
/// out whether a text that he knows is in the trace.
final class BlockIdHasher {

    private final MessageDigest salted;
    private final int blockTokens;

    /// @param salt random bytes
    BlockIdHasher(byte[] salt, int blockTokens) {
        try {
            salted = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible); // every JDK has it
        }
        salted.update(salt);
        this.blockTokens = blockTokens;
    }

    /// An id for each block, 0 to 2^63 - 1; the last may be partial.
    long[] of(int[] tokens) {
        long[] ids = new long[Math.ceilDiv(tokens.length, blockTokens)];
        byte[] before = {};
        for (int i = 0; i < ids.length; i++) {
            int end = Math.min(tokens.length, (i + 1) * blockTokens);
            ByteBuffer bytes =
                    ByteBuffer.allocate((end - i * blockTokens) * Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
            for (int token = i * blockTokens; token < end; token++) {
                bytes.putInt(tokens[token]);
            }
            before = digest(before, bytes.array());
            ids[i] = ByteBuffer.wrap(before).getLong() >>> 1;
        }
        return ids;
    }

    private byte[] digest(byte[] before, byte[] tokens) {
        try {
            MessageDigest digest = (MessageDigest) salted.clone();
            digest.update(before);
            return digest.digest(tokens);
        } catch (CloneNotSupportedException impossible) {
            throw new IllegalStateException(impossible); // the JDK's own can be cloned
        }
    }
}
