package io.kvcache.server.lm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// Requests and replies as LMCache's client makes and reads them, written from the tables and not from
/// the server's code.
public record LmTestClient() {

    public static final int PUT = 1;
    public static final int GET = 2;
    public static final int EXIST = 3;
    public static final int LIST = 4;
    public static final int HEALTH = 5;

    /// A client's description of a tensor.
    @SuppressWarnings("ArrayRecordComponent") // never compared
    public record Meta(int fmt, int dtype, int location, int... shape) {}

    public static final Meta META = new Meta(1, 3, 1, 2, 32, 256, 1024);
    public static final Meta NO_META = new Meta(1, 2, 0, 0, 0, 0, 0);

    byte[] request(int command, int length, Meta meta, String key) {
        ByteBuffer out = ByteBuffer.allocate(300).order(ByteOrder.LITTLE_ENDIAN);
        out.putInt(command).putInt(length);
        out.putInt(meta.fmt()).putInt(meta.dtype()).putInt(meta.location());
        Arrays.stream(meta.shape()).forEach(out::putInt);
        byte[] padded = new byte[150];
        Arrays.fill(padded, (byte) ' ');
        byte[] text = key.getBytes(StandardCharsets.ISO_8859_1);
        System.arraycopy(text, 0, padded, 0, text.length);
        out.put(padded);
        return Arrays.copyOf(out.array(), out.position());
    }

    public byte[] put(String key, Meta meta, byte[] body) {
        byte[] head = request(PUT, body.length, meta, key);
        byte[] all = Arrays.copyOf(head, head.length + body.length);
        System.arraycopy(body, 0, all, head.length, body.length);
        return all;
    }

    public byte[] ask(int command, String key) {
        return request(command, 0, NO_META, key);
    }

    /// The reply that the client expects.
    public byte[] reply(int code, Meta meta, byte[] body) {
        ByteBuffer out = ByteBuffer.allocate(36 + body.length).order(ByteOrder.LITTLE_ENDIAN);
        out.putInt(code).putInt(body.length);
        out.putInt(meta.fmt()).putInt(meta.dtype());
        Arrays.stream(meta.shape()).forEach(out::putInt);
        out.putInt(meta.location());
        out.put(body);
        return Arrays.copyOf(out.array(), out.position());
    }

    public byte[] fail() {
        return reply(400, NO_META, new byte[0]);
    }

    public byte[] success() {
        return reply(200, NO_META, new byte[0]);
    }
}
