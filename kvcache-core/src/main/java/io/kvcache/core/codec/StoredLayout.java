package io.kvcache.core.codec;

import io.kvcache.core.memory.Pages;

/// How the bytes of a block or object lie where they are stored.
///
/// ```
/// head   some pages: of a coded block its chunks' directory and escapes
/// body   a coded block's whole chunks, 12 pages each; or the plain bytes
/// tail   of a coded block the plain bytes behind its last whole chunk
/// ```
///
/// @param codec [#PLAIN_CODEC] or [#EXPONENT_CODEC]
/// @param headPages pages of the head, 0 to [#MAX_HEAD_PAGES]; a coded block has one at least
public record StoredLayout(int codec, int headPages) {

    /// Bytes as they are.
    public static final int PLAIN_CODEC = 0;

    /// Whole chunks coded by [ChunkCoder].
    public static final int EXPONENT_CODEC = 1;

    /// What the field of a head takes.
    public static final int MAX_HEAD_PAGES = 255;

    /// Bits that [#toBits] takes.
    public static final int BITS = 9;

    /// Where a tier's addresses have the layout: above as many bits, which are the tier's own.
    public static final int ADDRESS_SHIFT = 50;

    /// As it is, without a head.
    public static final StoredLayout PLAIN = new StoredLayout(PLAIN_CODEC, 0);

    private static final int HEAD_BITS = 8;
    private static final int SAVED_PAGES = (ChunkCoder.CHUNK_BYTES - ChunkCoder.BODY_BYTES) / Pages.BYTES;

    public StoredLayout {
        if (!isValid(codec, headPages)) {
            throw new IllegalArgumentException("codec " + codec + " with a head of " + headPages
                    + " pages; codecs are 0 and 1, heads 0 to " + MAX_HEAD_PAGES + " pages, of codec 1 at least 1");
        }
    }

    /// Returns whether these bits name a layout.
    public static boolean isValid(int codec, int headPages) {
        return switch (codec) {
            case PLAIN_CODEC -> headPages >= 0 && headPages <= MAX_HEAD_PAGES;
            case EXPONENT_CODEC -> headPages > 0 && headPages <= MAX_HEAD_PAGES;
            default -> false;
        };
    }

    /// Returns whether [#toBits] of any layout gives such bits.
    public static boolean areLayout(int bits) {
        return isValid(bits >>> HEAD_BITS, bits & MAX_HEAD_PAGES);
    }

    /// The layout of bits that [#toBits] gave.
    public static StoredLayout ofBits(int bits) {
        return bits == 0 ? PLAIN : new StoredLayout(bits >>> HEAD_BITS, bits & MAX_HEAD_PAGES);
    }

    /// Returns the layout that is encoded in an address of a tier.
    public static StoredLayout ofAddress(long address) {
        return ofBits((int) (address >>> ADDRESS_SHIFT) & (1 << BITS) - 1);
    }

    /// Returns an address with this layout encoded in it.
    ///
    /// @param own bits of the tier, below [#ADDRESS_SHIFT]
    public long toAddress(long own) {
        return (long) toBits() << ADDRESS_SHIFT | own;
    }

    /// Returns it as a number of [#BITS] bits, 0 for [#PLAIN].
    public int toBits() {
        return codec << HEAD_BITS | headPages;
    }

    /// Returns whether chunks are coded.
    public boolean isCoded() {
        return codec != PLAIN_CODEC;
    }

    /// Returns the pages that a block or object takes.
    ///
    /// @param bytes plain ones
    public int pages(int bytes) {
        int plain = Math.ceilDiv(bytes, Pages.BYTES);
        return headPages + plain - (isCoded() ? chunks(bytes) * SAVED_PAGES : 0);
    }

    /// Number of whole chunks in the given number of plain bytes.
    static int chunks(int bytes) {
        return bytes / ChunkCoder.CHUNK_BYTES;
    }
}
