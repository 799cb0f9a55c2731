package io.kvcache.core.identity;

import java.util.concurrent.atomic.AtomicInteger;

/// The digests of a chain's blocks, 32 bytes each, in an array that chains grown from one another share.
///
/// A digest once written never changes, and a chain reads only as many as it had when it was made. So a chain
/// that grows may write right after its last digest, if it is the first to do so there; the second one to grow
/// from the same place takes a copy. Readers need no fence: a chain reaches its log through a final field, set
/// after the digests were written.
final class DigestArray {

    static final DigestArray EMPTY = new DigestArray(0);

    /// The length of the largest array in whole digests.
    private static final int MAX_DIGESTS = (Integer.MAX_VALUE - 8) / Sha256.BYTES;

    private static final ValueRange DIGESTS = new ValueRange("blocks of a chain", 0, MAX_DIGESTS);

    private final byte[] bytes;
    private final AtomicInteger claimed = new AtomicInteger();

    private DigestArray(int capacity) {
        bytes = new byte[capacity * Sha256.BYTES];
    }

    /// A log with the first `held` digests of this one and `more` after them for the caller to write: this very
    /// log when the place is free, else a copy.
    DigestArray reserve(int held, int more) {
        DIGESTS.check((long) held + more);
        int needed = held + more;
        if (needed * Sha256.BYTES <= bytes.length && claimed.compareAndSet(held, needed)) {
            return this;
        }
        // The first chain of a sequence gets what it asks for; one that grows will probably grow again.
        int spare = Math.min(held / 2, MAX_DIGESTS - needed);
        DigestArray copy = new DigestArray(needed + spare);
        System.arraycopy(bytes, 0, copy.bytes, 0, held * Sha256.BYTES);
        copy.claimed.set(needed);
        return copy;
    }

    /// The array, for the caller that reserved a place in it.
    byte[] bytes() {
        return bytes;
    }

    long keyHi(int index) {
        return BlockKey.longAt(bytes, index * Sha256.BYTES);
    }

    long keyLo(int index) {
        return BlockKey.longAt(bytes, index * Sha256.BYTES + Long.BYTES);
    }

    /// The engine's hash behind a bare key.
    long engineHash(int index) {
        return BlockKey.longAt(bytes, index * Sha256.BYTES + BlockKey.BYTES);
    }
}
