package io.kvcache.bench.server;

import io.kvcache.bench.server.LoadGenerator.BenchClient;
import java.io.IOException;
import java.nio.ByteBuffer;

/// One connection that sets, or gets, values of one size.
final class ValueClient implements BenchClient {

    /// Bytes handed to the socket at once: 1 MiB, which stays in the second-level cache.
    private static final int CHUNK_BYTES = 1 << 20;

    private static final int KEY_DIGITS = 12;

    private final RawSocket rawSocket;
    private final ByteBuffer value;
    private final int bytes;
    private final boolean write;

    ValueClient(int port, int bytes, boolean write) throws IOException {
        rawSocket = new RawSocket(port, Math.min(bytes, CHUNK_BYTES));
        this.bytes = bytes;
        this.write = write;
        value = ByteBuffer.allocateDirect(Math.min(bytes, CHUNK_BYTES));
    }

    /// The key with a number, as redis-benchmark names it.
    static String keyName(int key) {
        String number = Integer.toString(key);
        return "key:" + "0".repeat(KEY_DIGITS - number.length()) + number;
    }

    @Override
    public void roundTrip(int key) throws IOException {
        if (write) {
            setValue(key, bytes);
        } else if (!getValue(key)) {
            throw new IOException(keyName(key) + " is gone");
        }
    }

    /// Has the server forget all keys.
    void flushAll() throws IOException {
        rawSocket.send("FLUSHDB\r\n");
        rawSocket.expect("+OK\r\n");
    }

    /// Sets a value of another size than usual, but no larger.
    void setValue(int key, int length) throws IOException {
        rawSocket.send("*3\r\n$3\r\nSET\r\n$16\r\n" + keyName(key) + "\r\n$" + length + "\r\n");
        for (int left = length; left > 0; left -= value.limit()) {
            rawSocket.send(value.clear().limit(Math.min(left, value.capacity())));
        }
        rawSocket.send("\r\n");
        rawSocket.expect("+OK\r\n");
    }

    /// Gets a value of any size; answers whether there is one.
    boolean getValue(int key) throws IOException {
        rawSocket.send("*2\r\n$3\r\nGET\r\n$16\r\n" + keyName(key) + "\r\n");
        long length = rawSocket.readLength();
        if (length >= 0) {
            rawSocket.skip(length + 2);
        }
        return length >= 0;
    }

    @Override
    public void close() throws IOException {
        rawSocket.close();
    }
}
