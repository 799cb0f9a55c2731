package io.kvcache.core.identity;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.security.MessageDigest;

/// Hashes tokens block by block: `digest[i] = SHA-256(digest[i-1] ‖ tokens[i] as int32 little-endian)`.
///
/// One array holds the digest of the block before and the tokens of the block being filled, so a block is one
/// update and one digest, and nothing is allocated per block.
///
/// **Threads.** One.
final class ChainHasher {

    private static final VarHandle INT_LE = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    private final MessageDigest sha = Sha256.newDigest();
    private final byte[] input;
    private final byte[] out;
    private int filled = Sha256.BYTES;
    private int outOffset;

    /// @param parent holds the digest to start from at `parentOffset`
    /// @param out takes the digests of full blocks, from `outOffset` on
    ChainHasher(int blockTokens, byte[] parent, int parentOffset, byte[] out, int outOffset) {
        input = new byte[Sha256.BYTES + blockTokens * Integer.BYTES];
        System.arraycopy(parent, parentOffset, input, 0, Sha256.BYTES);
        this.out = out;
        this.outOffset = outOffset;
    }

    /// Hashes `tokens[0, count)` after those given before; writes a digest for each block that becomes full.
    void append(int[] tokens, int count) {
        int next = 0;
        while (next < count) {
            int taken = Math.min(count - next, (input.length - filled) / Integer.BYTES);
            copy(tokens, next, taken);
            next += taken;
            if (filled == input.length) {
                finishBlock();
            }
        }
    }

    private void copy(int[] tokens, int from, int count) {
        byte[] to = input;
        int at = filled;
        for (int i = from; i < from + count; i++, at += Integer.BYTES) {
            INT_LE.set(to, at, tokens[i]);
        }
        filled = at;
    }

    private void finishBlock() {
        sha.update(input, 0, input.length);
        Sha256.finish(sha, input, 0);
        System.arraycopy(input, 0, out, outOffset, Sha256.BYTES);
        outOffset += Sha256.BYTES;
        filled = Sha256.BYTES;
    }
}
