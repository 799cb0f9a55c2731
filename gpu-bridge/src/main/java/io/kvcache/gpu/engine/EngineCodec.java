package io.kvcache.gpu.engine;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/// Messages on the socket, as in ENGINES.md: a kind and a number, then the fields of that kind, all little-endian.
final class EngineCodec {

    static final int VERSION = 1;

    static final int HELLO = 1;
    static final int REGION = 2;
    static final int EVENT = 3;
    static final int POOL = 4;
    static final int CHAIN = 5;
    static final int LOAD = 6;
    static final int STORE = 7;
    static final int SEAL = 8;
    static final int STEPS = 9;
    static final int LOAD_LAYERS = 10;
    static final int AWAIT_LAYERS = 11;
    static final int ROOM = 12;

    static final int DONE = 100;
    static final int REFUSED = 101;

    /// Kind and number.
    static final int HEADER_BYTES = 8;

    static final int UUID_BYTES = 16;

    /// How an engine names its memory.
    static final int BY_TOKEN = 0;

    static final int BY_DESCRIPTOR = 1;

    /// In place of an event's number: nothing to wait for.
    static final int NO_EVENT = -1;

    private static final int MAX_REASON_BYTES = 4096;

    private EngineCodec() {}

    /// An answer.
    ///
    /// @param number of the request
    /// @param bytes of what [#DONE] has to say
    static ByteBuffer encodeDone(int number, int bytes) {
        return ByteBuffer.allocate(HEADER_BYTES + bytes)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(DONE)
                .putInt(number);
    }

    /// An answer of one number.
    static ByteBuffer encodeDone(int number, long[] values) {
        ByteBuffer answer = encodeDone(number, values.length * Long.BYTES);
        for (long value : values) {
            answer.putLong(value);
        }
        return answer.flip();
    }

    static ByteBuffer encodeRefused(int number, String reason) {
        byte[] text = reason.getBytes(StandardCharsets.UTF_8);
        int length = Math.min(text.length, MAX_REASON_BYTES);
        return ByteBuffer.allocate(HEADER_BYTES + length)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(REFUSED)
                .putInt(number)
                .put(text, 0, length)
                .flip();
    }

    /// The next bytes.
    static byte[] readBytes(ByteBuffer body, int length) {
        byte[] bytes = new byte[length];
        body.get(bytes);
        return bytes;
    }

    /// A text: its length in bytes as 32 bits, then UTF-8.
    ///
    /// @throws IllegalArgumentException if the bytes are not text
    static String readText(ByteBuffer body) {
        int length = body.getInt();
        require(length >= 0 && length <= body.remaining(), "bytes of a text", length);
        ByteBuffer text = body.slice(body.position(), length);
        body.position(body.position() + length);
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(text).toString();
        } catch (CharacterCodingException none) {
            throw new IllegalArgumentException("a text that is not UTF-8", none);
        }
    }

    /// The next 32-bit numbers.
    ///
    /// @throws IllegalArgumentException when fewer are left
    static int[] readInts(ByteBuffer body, int count) {
        require(count >= 0 && (long) count * Integer.BYTES <= body.remaining(), "numbers in a message", count);
        int[] ints = new int[count];
        for (int i = 0; i < count; i++) {
            ints[i] = body.getInt();
        }
        return ints;
    }

    /// @throws IllegalArgumentException unless it holds
    static void require(boolean holds, String what, long value) {
        if (!holds) {
            throw new IllegalArgumentException(what + ": " + value + " is out of range");
        }
    }
}
