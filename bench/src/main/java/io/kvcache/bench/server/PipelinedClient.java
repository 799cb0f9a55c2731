package io.kvcache.bench.server;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/// One connection that sends sixteen small requests at once and takes their replies.
final class PipelinedClient implements BenchClient {

    static final int DEPTH = 16;

    /// Each request asks for another key.
    private static final int STRIDE = 7919;

    /// A small request, and how long its reply is.
    enum SmallRequest {
        EXISTS("*2\r\n$6\r\nEXISTS\r\n$16\r\n%s\r\n", ":1\r\n".length()),
        GET("*2\r\n$3\r\nGET\r\n$16\r\n%s\r\n", "$64\r\n".length() + 64 + 2),
        SET("*3\r\n$3\r\nSET\r\n$16\r\n%s\r\n$64\r\n" + "v".repeat(64) + "\r\n", "+OK\r\n".length());

        private final String form;
        private final int replyBytes;

        SmallRequest(String form, int replyBytes) {
            this.form = form;
            this.replyBytes = replyBytes;
        }
    }

    private final RawSocket rawSocket;
    private final SmallRequest request;
    private final ByteBuffer[] batches;

    /// @param keys asked for, from 0 on; all of them exist, with values of 64 bytes
    PipelinedClient(int port, SmallRequest request, int keys) throws IOException {
        rawSocket = new RawSocket(port, DEPTH * request.replyBytes);
        this.request = request;
        batches = new ByteBuffer[keys / DEPTH];
        for (int i = 0; i < batches.length; i++) {
            batches[i] = batch(i, keys);
        }
    }

    private ByteBuffer batch(int number, int keys) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < DEPTH; i++) {
            int key = Math.floorMod((number * DEPTH + i) * STRIDE, keys);
            text.append(request.form.replace("%s", ValueClient.keyName(key)));
        }
        byte[] bytes = text.toString().getBytes(StandardCharsets.US_ASCII);
        return ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
    }

    @Override
    public void roundTrip(int key) throws IOException {
        rawSocket.send(batches[key % batches.length].rewind());
        rawSocket.skip((long) DEPTH * request.replyBytes);
    }

    @Override
    public void close() throws IOException {
        rawSocket.close();
    }
}
