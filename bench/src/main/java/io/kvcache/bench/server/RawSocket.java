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

/// A connection to this machine, with as little as possible between a client and its socket.
final class RawSocket implements AutoCloseable {

    /// Header and line ends of any reply.
    private static final int FRAMING = 64;

    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(60);
    private static final Duration RETRY_INTERVAL = Duration.ofMillis(5);

    private final SocketChannel channel;
    private final ByteBuffer in;

    /// @param bytes read at once
    RawSocket(int port, int bytes) throws IOException {
        channel = SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        in = ByteBuffer.allocateDirect(bytes + FRAMING).limit(0);
    }

    /// Waits until a server takes connections and answers a PING.
    static void awaitPong(int port) throws IOException, InterruptedException {
        try (RawSocket rawSocket = awaitListening(port)) {
            rawSocket.send("PING\r\n");
            rawSocket.expect("+PONG\r\n");
        }
    }

    /// Connects as soon as a server listens at the port.
    ///
    /// @throws IOException when none does within the timeout
    static RawSocket awaitListening(int port) throws IOException, InterruptedException {
        long end = System.nanoTime() + CONNECT_TIMEOUT.toNanos();
        while (true) {
            try {
                return new RawSocket(port, 1);
            } catch (IOException notYet) {
                if (System.nanoTime() > end) {
                    throw notYet;
                }
                Thread.sleep(RETRY_INTERVAL);
            }
        }
    }

    void send(String text) throws IOException {
        send(ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII)));
    }

    void send(ByteBuffer out) throws IOException {
        while (out.hasRemaining()) {
            channel.write(out);
        }
    }

    /// Takes a text that has to come next.
    void expect(String text) throws IOException {
        StringBuilder reply = new StringBuilder();
        while (reply.length() < text.length()) {
            reply.append((char) next());
        }
        if (!reply.toString().equals(text)) {
            throw new IOException(
                    "expected " + text.strip() + ", got " + reply.toString().strip());
        }
    }

    /// Takes the length that goes before a value; negative when there is none.
    long readLength() throws IOException {
        StringBuilder line = new StringBuilder();
        for (byte each = next(); each != '\n'; each = next()) {
            line.append((char) each);
        }
        if (line.isEmpty() || line.charAt(0) != '$') {
            throw new IOException("expected a value, got " + line);
        }
        return Long.parseLong(line.substring(1).strip());
    }

    /// Takes bytes and forgets them.
    void skip(long bytes) throws IOException {
        long left = bytes - in.remaining();
        if (left < 0) {
            in.position(in.limit() + (int) left);
            return;
        }
        while (left > 0) {
            in.clear().limit((int) Math.min(in.capacity(), left));
            left -= read();
        }
        in.limit(0);
    }

    private byte next() throws IOException {
        if (!in.hasRemaining()) {
            in.clear();
            read();
            in.flip();
        }
        return in.get();
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
