package io.kvcache.bench.server;

import io.kvcache.bench.server.LoadGenerator.BenchClient;
import java.io.IOException;
import java.nio.ByteBuffer;

/// One connection that sets, or gets, values of one size.
final class ValueClient implements BenchClient {

    /// Bytes handed to the socket at once: 1 MiB, which stays in the second-level cache.
    private static final int CHUNK_BYTES = 1 << 20;

    private static final int KEY_DIGITS = 12;

    private final RespConnection connection;
    private final ByteBuffer value;
    private final int bytes;
    private final boolean write;

    ValueClient(int port, int bytes, boolean write) throws IOException {
        connection = new RespConnection(port, Math.min(bytes, CHUNK_BYTES));
        this.bytes = bytes;
        this.write = write;
        value = ByteBuffer.allocateDirect(Math.min(bytes, CHUNK_BYTES));
    }

    /// The key with a number, as redis-benchmark names it.
    static String keyName(int key) {
        String number = Integer.toString(key);
        return "key:" + "0".repeat(KEY_DIGITS - number.length()) + number;
    }

    /// Deletes all keys of a server and stores the first ones, one after the other.
    ///
    /// @param bytes of each value
    /// @param keys how many, from 0 on
    static void fill(int port, int bytes, int keys) throws IOException {
        try (ValueClient client = new ValueClient(port, bytes, true)) {
            client.flushAll();
            for (int key = 0; key < keys; key++) {
                client.setValue(key, bytes);
            }
        }
    }

    @Override
    public void roundTrip(int key) throws IOException {
        if (write) {
            setValue(key, bytes);
        } else if (!getValue(key)) {
            throw new IOException(keyName(key) + " is gone");
        }
    }

    /// Deletes all keys of the server.
    void flushAll() throws IOException {
        connection.send(RespConnection.command("FLUSHDB"));
        connection.expect("+OK\r\n");
    }

    /// Sets a value that may be smaller than usual, but not larger.
    void setValue(int key, int length) throws IOException {
        connection.send(RespConnection.setHead(keyName(key), length));
        for (int left = length; left > 0; left -= value.limit()) {
            connection.send(value.clear().limit(Math.min(left, value.capacity())));
        }
        connection.send("\r\n");
        connection.expect("+OK\r\n");
    }

    /// Gets a value of any size. Returns false if the key has none.
    boolean getValue(int key) throws IOException {
        connection.send(RespConnection.command("GET", keyName(key)));
        long length = connection.readLength();
        if (length >= 0) {
            connection.skip(length + 2);
        }
        return length >= 0;
    }

    @Override
    public void close() throws IOException {
        connection.close();
    }
}
