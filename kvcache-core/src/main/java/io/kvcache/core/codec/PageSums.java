package io.kvcache.core.codec;

import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.memory.Pages;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;
import java.util.zip.CRC32C;

/// CRC32C of each page of 4 KiB of a block's plain bytes: int32 each, one after another, up to a whole page.
///
/// A CRC is linear, so the sums of pages give those of chunks, and these the block's checksum: a table of page sums is
/// proved by the checksum that every record has anyway. Then each page is proved alone.
///
/// **Threads.** Any.
final class PageSums {

    private static final ValueLayout.OfInt INT32 = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /// CRC32C's polynomial, lowest bit first.
    private static final int POLYNOMIAL = 0x82F6_3B78;

    private static final ZeroShift WHOLE_PAGE = ZeroShift.of(Pages.BYTES);

    private PageSums() {}

    /// Pages that hold the checksums of the given number of plain bytes.
    static int headPages(int bytes) {
        return Math.ceilDiv(Math.ceilDiv(bytes, Pages.BYTES) * Integer.BYTES, Pages.BYTES);
    }

    /// Writes the sums of a block.
    ///
    /// @param plain native memory with its bytes in order, in whole pages
    /// @param head [#headPages] of native memory
    static void write(List<MemorySegment> plain, int bytes, MemorySegment head) {
        CRC32C crc = new CRC32C();
        long at = 0;
        long left = bytes;
        for (MemorySegment span : plain) {
            for (long page = 0; page < span.byteSize() && left > 0; page += Pages.BYTES) {
                long length = Math.min(left, Pages.BYTES);
                crc.reset();
                crc.update(span.asSlice(page, length).asByteBuffer());
                head.set(INT32, at, (int) crc.getValue());
                at += Integer.BYTES;
                left -= length;
            }
        }
        head.asSlice(at).fill((byte) 0);
    }

    /// Returns whether sums are those of a block with this checksum.
    static boolean prove(MemorySegment head, int bytes, int checksum) {
        ChunkedCrc whole = new ChunkedCrc();
        for (long chunk = 0; chunk < bytes; chunk += ChunkedCrc.CHUNK_BYTES) {
            long end = Math.min(bytes, chunk + ChunkedCrc.CHUNK_BYTES);
            int sum = sum(head, (int) (chunk / Pages.BYTES));
            for (long page = chunk + Pages.BYTES; page < end; page += Pages.BYTES) {
                long length = Math.min(end - page, Pages.BYTES);
                ZeroShift shift = length == Pages.BYTES ? WHOLE_PAGE : ZeroShift.of((int) length);
                sum = shift.apply(sum) ^ sum(head, (int) (page / Pages.BYTES));
            }
            whole.addChunkSum(sum);
        }
        return whole.value() == checksum;
    }

    /// The sum of a page.
    static int sum(MemorySegment head, int page) {
        return head.get(INT32, (long) page * Integer.BYTES);
    }

    /// The effect on a CRC of appending a fixed number of zero bytes: a linear map of its 32 bits, as one table for
    /// each of its bytes.
    private static final class ZeroShift {

        private final int[][] tables;

        private ZeroShift(int[][] tables) {
            this.tables = tables;
        }

        static ZeroShift of(int bytes) {
            int[] bit = new int[Integer.SIZE];
            bit[0] = POLYNOMIAL;
            for (int i = 1; i < Integer.SIZE; i++) {
                bit[i] = 1 << (i - 1);
            }
            int[] map = identity();
            int[] power = bit;
            for (long left = (long) bytes * Byte.SIZE; left > 0; left >>>= 1) {
                if ((left & 1) != 0) {
                    map = multiply(power, map);
                }
                power = multiply(power, power);
            }
            int[][] tables = new int[Integer.BYTES][1 << Byte.SIZE];
            for (int part = 0; part < Integer.BYTES; part++) {
                for (int value = 0; value < 1 << Byte.SIZE; value++) {
                    tables[part][value] = times(map, value << (part * Byte.SIZE));
                }
            }
            return new ZeroShift(tables);
        }

        private static int[] identity() {
            int[] map = new int[Integer.SIZE];
            for (int i = 0; i < Integer.SIZE; i++) {
                map[i] = 1 << i;
            }
            return map;
        }

        private static int[] multiply(int[] left, int[] right) {
            int[] product = new int[Integer.SIZE];
            for (int i = 0; i < Integer.SIZE; i++) {
                product[i] = times(left, right[i]);
            }
            return product;
        }

        private static int times(int[] map, int bits) {
            int sum = 0;
            for (int left = bits; left != 0; left &= left - 1) {
                sum ^= map[Integer.numberOfTrailingZeros(left)];
            }
            return sum;
        }

        int apply(int crc) {
            return tables[0][crc & 0xFF]
                    ^ tables[1][crc >>> 8 & 0xFF]
                    ^ tables[2][crc >>> 16 & 0xFF]
                    ^ tables[3][crc >>> 24];
        }
    }
}
