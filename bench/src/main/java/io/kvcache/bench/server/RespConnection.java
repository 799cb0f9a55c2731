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
import org.jspecify.annotations.Nullable;

/// A connection to a RESP server on this machine, with as little as possible between a client and its socket. All
/// clients of measurements use it, for KVCache and for Redis alike.
///
/// **Threads.** For one thread at a time.
public final class RespConnection implements AutoCloseable {

    /// Header and line ends of any reply.
    private static final int FRAMING = 64;

    /// Bytes handed to the socket or read from it at once: 1 MiB, which stays in the second-level cache.
    private static final int MAX_CHUNK_BYTES = 1 << 20;

    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(60);
    private static final Duration RETRY_INTERVAL = Duration.ofMillis(5);

    private final SocketChannel channel;
    private final ByteBuffer in;
    private @Nullable ByteBuffer value;

    /// @param bytes of the largest value or of the replies that are awaited together; at most 1 MiB is read at
    ///     once
    public RespConnection(int port, int bytes) throws IOException {
        channel = SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        in = ByteBuffer.allocateDirect(Math.min(bytes, MAX_CHUNK_BYTES) + FRAMING)
                .limit(0);
    }

    /// Waits until a server takes connections and answers a PING.
    static void awaitPong(int port) throws IOException, InterruptedException {
        try (RespConnection connection = awaitListening(port)) {
            connection.send(command("PING"));
            connection.expect("+PONG\r\n");
        }
    }

    /// Connects as soon as a server listens at the port.
    ///
    /// @throws IOException when none does within the timeout
    static RespConnection awaitListening(int port) throws IOException, InterruptedException {
        long end = System.nanoTime() + CONNECT_TIMEOUT.toNanos();
        while (true) {
            try {
                return new RespConnection(port, 1);
            } catch (IOException notYet) {
                if (System.nanoTime() > end) {
                    throw notYet;
                }
                Thread.sleep(RETRY_INTERVAL);
            }
        }
    }

    /// Returns a command of ASCII words.
    public static String command(String... words) {
        StringBuilder command = new StringBuilder(64).append('*').append(words.length);
        command.append("\r\n");
        for (String word : words) {
            appendWord(command, word);
        }
        return command.toString();
    }

    private static void appendWord(StringBuilder command, String word) {
        command.append('$').append(word.length()).append("\r\n").append(word).append("\r\n");
    }

    public void send(String text) throws IOException {
        send(ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII)));
    }

    void send(ByteBuffer out) throws IOException {
        while (out.hasRemaining()) {
            channel.write(out);
        }
    }

    /// Reads a text that must come next, and not a byte after it.
    ///
    /// @throws IOException if the server sends another text
    public void expect(String text) throws IOException {
        for (int i = 0; i < text.length(); i++) {
            if (!in.hasRemaining()) {
                in.clear().limit(Math.min(in.capacity(), text.length() - i));
                read();
                in.flip();
            }
            byte found = in.get();
            if (found != text.charAt(i)) {
                in.position(in.position() - 1);
                throw new IOException("expected " + text.strip() + ", got "
                        + text.substring(0, i)
                        + StandardCharsets.US_ASCII.decode(in).toString().strip());
            }
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

    /// Deletes all keys of the server.
    void flush() throws IOException {
        send(command("FLUSHDB"));
        expect("+OK\r\n");
    }

    /// Sets a value of so many bytes.
    public void set(String key, int bytes) throws IOException {
        StringBuilder head = new StringBuilder(64).append("*3\r\n$3\r\nSET\r\n");
        appendWord(head, key);
        send(head.append('$').append(bytes).append("\r\n").toString());
        ByteBuffer chunk = value;
        if (chunk == null || chunk.capacity() < Math.min(bytes, MAX_CHUNK_BYTES)) {
            chunk = ByteBuffer.allocateDirect(Math.min(bytes, MAX_CHUNK_BYTES));
            value = chunk;
        }
        for (int left = bytes; left > 0; left -= chunk.limit()) {
            send(chunk.clear().limit(Math.min(left, chunk.capacity())));
        }
        send("\r\n");
        expect("+OK\r\n");
    }

    /// Gets a value of any size and forgets it.
    ///
    /// @return whether there is one
    boolean find(String key) throws IOException {
        send(command("GET", key));
        long length = readLength();
        if (length >= 0) {
            skip(length + 2);
        }
        return length >= 0;
    }

    /// Gets a value and forgets it.
    ///
    /// @throws IOException unless it has so many bytes
    public void get(String key, long bytes) throws IOException {
        send(command("GET", key));
        long length = readLength();
        if (length != bytes) {
            throw new IOException(key + " has " + length + " bytes, not " + bytes);
        }
        skip(length + 2);
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
