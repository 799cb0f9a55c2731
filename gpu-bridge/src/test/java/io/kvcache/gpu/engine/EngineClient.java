package io.kvcache.gpu.engine;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.concurrent.TimeUnit;

/// An engine's end of the socket.
final class EngineClient implements AutoCloseable {

    private static final int LONG_MILLIS = (int) TimeUnit.SECONDS.toMillis(60);

    private final UnixSocket socket;
    private int numbers;

    EngineClient(Path path) throws IOException {
        socket = UnixSocket.connect(path);
    }

    /// A request was answered with no.
    static final class Refused extends RuntimeException {

        private static final long serialVersionUID = 1;

        Refused(String reason) {
            super(reason);
        }
    }

    /// What is told of a pool, up to its layers: the region, the offset and the bytes of each are to follow.
    ///
    /// @param side stride in bytes
    /// @param page stride in bytes
    static ByteBuffer pool(
            String name, int layers, int sides, int pages, int pagesPerBlock, long side, long page, long piece) {
        byte[] text = name.getBytes(StandardCharsets.UTF_8);
        return body(4 + text.length + 4 * 4 + 3 * 8 + layers * 3 * 8)
                .putInt(text.length)
                .put(text)
                .putInt(layers)
                .putInt(sides)
                .putInt(pages)
                .putInt(pagesPerBlock)
                .putLong(side)
                .putLong(page)
                .putLong(piece);
    }

    static ByteBuffer body(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /// Sends a request.
    ///
    /// @return its number
    int send(int kind, ByteBuffer body, int descriptor) throws IOException {
        body.flip();
        ByteBuffer message = body(EngineCodec.HEADER_BYTES + body.remaining())
                .putInt(kind)
                .putInt(++numbers)
                .put(body);
        socket.send(message.flip(), descriptor);
        return numbers;
    }

    /// The next answer.
    ByteBuffer answer(int number) throws IOException {
        UnixSocket.Packet packet = socket.awaitReadable(LONG_MILLIS) ? socket.receive() : null;
        if (packet == null) {
            throw new IOException("no answer");
        }
        ByteBuffer body = packet.body();
        int kind = body.getInt();
        if (body.getInt() != number) {
            throw new IOException("the answer to another request");
        }
        if (kind == EngineCodec.REFUSED) {
            throw new Refused(StandardCharsets.UTF_8.decode(body).toString());
        }
        return body;
    }

    ByteBuffer ask(int kind, ByteBuffer body) throws IOException {
        return answer(send(kind, body, -1));
    }

    /// @param uuid of the device, in hexadecimal
    ByteBuffer hello(String uuid) throws IOException {
        return ask(
                EngineCodec.HELLO,
                body(20).putInt(EngineCodec.VERSION).put(HexFormat.of().parseHex(uuid)));
    }

    int region(byte[] token) throws IOException {
        return (int)
                ask(EngineCodec.REGION, body(68).putInt(EngineCodec.BY_TOKEN).put(token))
                        .getLong();
    }

    int region(int descriptor, long bytes) throws IOException {
        ByteBuffer body = body(12).putInt(EngineCodec.BY_DESCRIPTOR).putLong(bytes);
        return (int) answer(send(EngineCodec.REGION, body, descriptor)).getLong();
    }

    int event(byte[] token) throws IOException {
        return (int) ask(EngineCodec.EVENT, body(64).put(token)).getLong();
    }

    static ByteBuffer chain(int name, int pool, int kept, int... tokens) {
        ByteBuffer body = body(16 + 4 * tokens.length)
                .putInt(name)
                .putInt(pool)
                .putInt(kept)
                .putInt(tokens.length);
        for (int token : tokens) {
            body.putInt(token);
        }
        return body;
    }

    static ByteBuffer blocks(int chain, int from, int blocks, int event, int... pages) {
        ByteBuffer body = body(20 + 4 * pages.length)
                .putInt(chain)
                .putInt(from)
                .putInt(blocks)
                .putInt(event)
                .putInt(0);
        for (int page : pages) {
            body.putInt(page);
        }
        return body;
    }

    long seal(long store) throws IOException {
        return ask(EngineCodec.SEAL, body(4).putInt((int) store)).getLong();
    }

    @Override
    public void close() {
        socket.close();
    }
}
