package io.kvcache.bench.server;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/// One connection that sets and gets values of one size, and takes every byte that it asked for.
final class ValueClient implements AutoCloseable {

    /// Header and line ends of any reply.
    private static final int FRAMING = 64;

    /// Bytes handed to the socket at once: 1 MiB, which stays in the second-level cache.
    private static final int PART = 1 << 20;

    private static final long CONNECT_TRIES = Duration.ofSeconds(30).toMillis() / 50;

    private final SocketChannel channel;
    private final ByteBuffer value;
    private final ByteBuffer in;
    private final int bytes;

    ValueClient(int port, int bytes) throws IOException {
        channel = SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        this.bytes = bytes;
        value = ByteBuffer.allocateDirect(Math.min(bytes, PART));
        in = ByteBuffer.allocateDirect(Math.min(bytes, PART) + FRAMING);
    }

    /// Waits until a server answers at a port.
    static void awaitServer(int port) throws IOException, InterruptedException {
        for (long left = CONNECT_TRIES; ; left--) {
            try (ValueClient client = new ValueClient(port, 1)) {
                client.send("PING\r\n");
                client.expect("+PONG\r\n");
                return;
            } catch (IOException notYet) {
                if (left == 0) {
                    throw notYet;
                }
                Thread.sleep(50);
            }
        }
    }

    void set(int key) throws IOException {
        String name = "key" + key;
        send("*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n".formatted(name.length(), name, bytes));
        for (int left = bytes; left > 0; left -= value.limit()) {
            write(value.clear().limit(Math.min(left, value.capacity())));
        }
        send("\r\n");
        expect("+OK\r\n");
    }

    void get(int key) throws IOException {
        String name = "key" + key;
        send("*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n".formatted(name.length(), name));
        String header = "$" + bytes + "\r\n";
        expect(header);
        int left = bytes + 2 - in.remaining();
        while (left > 0) {
            in.clear().limit(Math.min(in.capacity(), left));
            left -= read();
        }
        in.limit(0);
    }

    private void send(String text) throws IOException {
        write(ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII)));
    }

    private void write(ByteBuffer out) throws IOException {
        while (out.hasRemaining()) {
            channel.write(out);
        }
    }

    /// Reads at least the expected text; what follows stays in the buffer.
    private void expect(String text) throws IOException {
        in.clear();
        while (in.position() < text.length()) {
            read();
        }
        in.flip();
        byte[] got = new byte[text.length()];
        in.get(got);
        String reply = new String(got, StandardCharsets.US_ASCII);
        if (!reply.equals(text)) {
            throw new IOException("expected " + text.strip() + ", got " + reply.strip());
        }
    }

    private int read() throws IOException {
        int read = channel.read(in);
        if (read < 0) {
            throw new EOFException("the server closed the connection");
        }
        return read;
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
