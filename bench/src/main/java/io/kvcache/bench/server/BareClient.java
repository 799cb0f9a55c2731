package io.kvcache.bench.server;

import java.io.IOException;
import java.nio.ByteBuffer;

/// One connection to a [Responder].
final class BareClient implements Exchange {

    private final Wire wire;
    private final int bytes;
    private final ByteBuffer request = ByteBuffer.allocateDirect(Responder.REQUEST_BYTES);

    /// @param bytes of an answer
    BareClient(int port, int bytes) throws IOException {
        wire = new Wire(port, Math.min(bytes, 1 << 20));
        this.bytes = bytes;
    }

    @Override
    public void ask(int key) throws IOException {
        wire.send(request.clear().putInt(0, bytes).putInt(Integer.BYTES, key));
        wire.skip(bytes);
    }

    @Override
    public void close() throws IOException {
        wire.close();
    }
}
