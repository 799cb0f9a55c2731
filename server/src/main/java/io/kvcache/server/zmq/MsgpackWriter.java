package io.kvcache.server.zmq;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// Writes MessagePack, each value in its shortest form.
///
/// Not safe for several threads.
final class MsgpackWriter {

    private byte[] bytes = new byte[1024];
    private int length;

    byte[] toByteArray() {
        return Arrays.copyOf(bytes, length);
    }

    MsgpackWriter nil() {
        return put(0xc0, 0, 0);
    }

    MsgpackWriter float64(double value) {
        return put(0xcb, Double.doubleToLongBits(value), Long.BYTES);
    }

    MsgpackWriter integer(long value) {
        if (value >= 0) {
            return unsigned(value);
        }
        if (value >= -32) {
            return put((int) (value & 0xff), 0, 0);
        }
        if (value >= Byte.MIN_VALUE) {
            return put(0xd0, value, 1);
        }
        if (value >= Short.MIN_VALUE) {
            return put(0xd1, value, 2);
        }
        return value >= Integer.MIN_VALUE ? put(0xd2, value, 4) : put(0xd3, value, 8);
    }

    /// @param value all 64 bits count
    MsgpackWriter unsigned(long value) {
        if (value < 0) {
            return put(0xcf, value, 8);
        }
        if (value < 128) {
            return put((int) value, 0, 0);
        }
        if (value < 1 << 8) {
            return put(0xcc, value, 1);
        }
        if (value < 1 << 16) {
            return put(0xcd, value, 2);
        }
        return value < 1L << 32 ? put(0xce, value, 4) : put(0xcf, value, 8);
    }

    MsgpackWriter text(String text) {
        byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
        if (utf8.length < 32) {
            put(0xa0 | utf8.length, 0, 0);
        } else if (utf8.length < 1 << 8) {
            put(0xd9, utf8.length, 1);
        } else {
            sized(0xda, utf8.length);
        }
        return append(utf8);
    }

    MsgpackWriter binary(byte[] binary) {
        if (binary.length < 1 << 8) {
            put(0xc4, binary.length, 1);
        } else {
            sized(0xc5, binary.length);
        }
        return append(binary);
    }

    /// So many values follow.
    MsgpackWriter array(int count) {
        return count < 16 ? put(0x90 | count, 0, 0) : sized(0xdc, count);
    }

    /// So many pairs follow.
    MsgpackWriter map(int count) {
        return count < 16 ? put(0x80 | count, 0, 0) : sized(0xde, count);
    }

    /// A size in 16 bits, or in 32 by the format after it.
    private MsgpackWriter sized(int format, int size) {
        return size < 1 << 16 ? put(format, size, 2) : put(format + 1, size, 4);
    }

    private MsgpackWriter put(int first, long value, int width) {
        room(1 + width);
        bytes[length++] = (byte) first;
        for (int shift = (width - 1) * Byte.SIZE; shift >= 0; shift -= Byte.SIZE) {
            bytes[length++] = (byte) (value >>> shift);
        }
        return this;
    }

    /// What another writer has written.
    MsgpackWriter append(byte[] more) {
        room(more.length);
        System.arraycopy(more, 0, bytes, length, more.length);
        length += more.length;
        return this;
    }

    private void room(int more) {
        if (length + more > bytes.length) {
            bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, length + more));
        }
    }
}
