package io.kvcache.server.zmq;

import java.math.BigInteger;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Reads MessagePack: as null, truth values, numbers, texts, lists, maps by text, and binary as hexadecimal text.
///
/// What claims more than there is, or is nested too deep, is refused before anything is made of it.
///
/// Not safe for several threads.
final class MsgpackReader {

    private static final int DEEPEST = 32;

    private final ByteBuffer in;
    private int depth;

    MsgpackReader(byte[] bytes) {
        in = ByteBuffer.wrap(bytes);
    }

    /// The next value.
    ///
    /// @throws IllegalArgumentException when there is no whole one
    @Nullable
    Object read() {
        try {
            return value();
        } catch (BufferUnderflowException cut) {
            throw new IllegalArgumentException("the message ends within a value", cut);
        }
    }

    private @Nullable Object value() {
        int first = in.get() & 0xff;
        if (first < 0x80) {
            return (long) first;
        }
        if (first < 0x90) {
            return map(first & 0x0f);
        }
        if (first < 0xa0) {
            return array(first & 0x0f);
        }
        if (first < 0xc0) {
            return text(first & 0x1f);
        }
        return first < 0xe0 ? wide(first) : (Object) (long) (byte) first;
    }

    private @Nullable Object wide(int first) {
        return switch (first) {
            case 0xc0 -> null;
            case 0xc2 -> false;
            case 0xc3 -> true;
            case 0xc4, 0xc5, 0xc6 -> binary(size(first - 0xc4));
            case 0xca -> (double) in.getFloat();
            case 0xcb -> in.getDouble();
            case 0xcc -> in.get() & 0xffL;
            case 0xcd -> in.getShort() & 0xffffL;
            case 0xce -> in.getInt() & 0xffff_ffffL;
            case 0xcf -> unsigned(in.getLong());
            case 0xd0 -> (long) in.get();
            case 0xd1 -> (long) in.getShort();
            case 0xd2 -> (long) in.getInt();
            case 0xd3 -> in.getLong();
            case 0xd9, 0xda, 0xdb -> text(size(first - 0xd9));
            case 0xdc, 0xdd -> array(size(first - 0xdc + 1));
            case 0xde, 0xdf -> map(size(first - 0xde + 1));
            default -> throw new IllegalArgumentException("a value begins with " + Integer.toHexString(first));
        };
    }

    private static Object unsigned(long value) {
        return value >= 0 ? (Object) value : new BigInteger(Long.toUnsignedString(value));
    }

    /// @param log of the bytes that the size takes
    private int size(int log) {
        return switch (log) {
            case 0 -> in.get() & 0xff;
            case 1 -> in.getShort() & 0xffff;
            default -> in.getInt();
        };
    }

    /// Each value takes at least a byte, so there cannot be more of them than bytes.
    private int checked(int size) {
        if (size < 0 || size > in.remaining()) {
            throw new IllegalArgumentException(
                    "a value of " + Integer.toUnsignedString(size) + " parts where " + in.remaining() + " bytes are");
        }
        return size;
    }

    private byte[] bytes(int size) {
        byte[] bytes = new byte[checked(size)];
        in.get(bytes);
        return bytes;
    }

    private String text(int size) {
        return new String(bytes(size), StandardCharsets.UTF_8);
    }

    private String binary(int size) {
        return HexFormat.of().formatHex(bytes(size));
    }

    private List<@Nullable Object> array(int size) {
        int count = checked(size);
        deeper();
        List<@Nullable Object> values = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            values.add(value());
        }
        depth--;
        return values;
    }

    private Map<String, @Nullable Object> map(int size) {
        int count = checked(size);
        deeper();
        Map<String, @Nullable Object> values = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) {
            String name = String.valueOf(value());
            values.put(name, value());
        }
        depth--;
        return values;
    }

    private void deeper() {
        if (++depth > DEEPEST) {
            throw new IllegalArgumentException("values are nested deeper than " + DEEPEST);
        }
    }
}
