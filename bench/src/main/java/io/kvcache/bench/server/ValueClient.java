package io.kvcache.bench.server;

import java.io.IOException;
import java.nio.ByteBuffer;

/// One connection that sets, or gets, values of one size.
final class ValueClient implements Exchange {

    /// Bytes handed to the socket at once: 1 MiB, which stays in the second-level cache.
    private static final int PART = 1 << 20;

    private static final int KEY_DIGITS = 12;

    private final Wire wire;
    private final ByteBuffer value;
    private final int bytes;
    private final boolean write;

    ValueClient(int port, int bytes, boolean write) throws IOException {
        wire = new Wire(port, Math.min(bytes, PART));
        this.bytes = bytes;
        this.write = write;
        value = ByteBuffer.allocateDirect(Math.min(bytes, PART));
    }

    /// The key with a number, as redis-benchmark names it.
    static String name(int key) {
        String number = Integer.toString(key);
        return "key:" + "0".repeat(KEY_DIGITS - number.length()) + number;
    }

    @Override
    public void ask(int key) throws IOException {
        if (write) {
            set(key, bytes);
        } else if (!get(key)) {
            throw new IOException(name(key) + " is gone");
        }
    }

    /// Has the server forget all keys.
    void forgetAll() throws IOException {
        wire.send("FLUSHDB\r\n");
        wire.expect("+OK\r\n");
    }

    /// Sets a value of another size than usual, but no larger.
    void set(int key, int length) throws IOException {
        wire.send("*3\r\n$3\r\nSET\r\n$16\r\n" + name(key) + "\r\n$" + length + "\r\n");
        for (int left = length; left > 0; left -= value.limit()) {
            wire.send(value.clear().limit(Math.min(left, value.capacity())));
        }
        wire.send("\r\n");
        wire.expect("+OK\r\n");
    }

    /// Gets a value of any size; answers whether there is one.
    boolean get(int key) throws IOException {
        wire.send("*2\r\n$3\r\nGET\r\n$16\r\n" + name(key) + "\r\n");
        long length = wire.length();
        if (length >= 0) {
            wire.skip(length + 2);
        }
        return length >= 0;
    }

    @Override
    public void close() throws IOException {
        wire.close();
    }
}
