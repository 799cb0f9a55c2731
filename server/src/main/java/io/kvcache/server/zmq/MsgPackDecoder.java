package io.kvcache.server.zmq;

import java.io.IOException;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.msgpack.core.MessageInsufficientBufferException;
import org.msgpack.core.MessagePack;
import org.msgpack.core.MessagePackException;
import org.msgpack.core.MessageUnpacker;

/// Decodes MessagePack of untrusted messages: null, truth values, numbers, texts, lists, maps by text, and binary
/// as hexadecimal text.
///
/// The library reads each value. Values that claim more bytes than there are, that are nested too deep, or that
/// have an extension type are rejected before anything is made of them.
///
/// Not safe for several threads.
final class MsgPackDecoder {

    private static final int MAX_DEPTH = 32;

    private final MessageUnpacker in;
    private final int length;
    private int depth;

    private MsgPackDecoder(byte[] bytes) {
        in = MessagePack.newDefaultUnpacker(bytes);
        length = bytes.length;
    }

    /// Decodes the first value of a message.
    ///
    /// @throws IllegalArgumentException if the message has no complete value
    static @Nullable Object decode(byte[] bytes) {
        try {
            return new MsgPackDecoder(bytes).readValue();
        } catch (MessageInsufficientBufferException cut) {
            throw new IllegalArgumentException("the message ends within a value", cut);
        } catch (MessagePackException | IOException other) {
            throw new IllegalArgumentException("the message is not MessagePack: " + other.getMessage(), other);
        }
    }

    private @Nullable Object readValue() throws IOException {
        return switch (in.getNextFormat().getValueType()) {
            case NIL -> {
                in.unpackNil();
                yield null;
            }
            case BOOLEAN -> in.unpackBoolean();
            case INTEGER -> toNumber(in.unpackBigInteger());
            case FLOAT -> in.unpackDouble();
            case STRING -> in.unpackString();
            case BINARY -> HexFormat.of().formatHex(in.readPayload(requireAvailable(in.unpackBinaryHeader())));
            case ARRAY -> readArray(requireAvailable(in.unpackArrayHeader()));
            case MAP -> readMap(requireAvailable(in.unpackMapHeader()));
            case EXTENSION -> throw new IllegalArgumentException("a value of an extension type");
        };
    }

    private static Object toNumber(BigInteger value) {
        return value.bitLength() < Long.SIZE ? (Object) value.longValue() : value;
    }

    /// Each value takes at least a byte, so there cannot be more of them than bytes.
    private int requireAvailable(int size) {
        long left = length - in.getTotalReadBytes();
        if (size > left) {
            throw new IllegalArgumentException("a value of " + size + " parts where " + left + " bytes are");
        }
        return size;
    }

    private List<@Nullable Object> readArray(int count) throws IOException {
        enterLevel();
        List<@Nullable Object> values = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            values.add(readValue());
        }
        depth--;
        return values;
    }

    private Map<String, @Nullable Object> readMap(int count) throws IOException {
        enterLevel();
        Map<String, @Nullable Object> values = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) {
            String name = String.valueOf(readValue());
            values.put(name, readValue());
        }
        depth--;
        return values;
    }

    private void enterLevel() {
        if (++depth > MAX_DEPTH) {
            throw new IllegalArgumentException("values are nested deeper than " + MAX_DEPTH);
        }
    }
}
