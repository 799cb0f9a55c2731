package io.kvcache.bench.server;

import java.io.IOException;
import java.nio.ByteBuffer;

/// One connection to a [BaselineServer].
final class BaselineClient implements BenchClient {

    private final RawSocket rawSocket;
    private final int bytes;
    private final ByteBuffer request = ByteBuffer.allocateDirect(BaselineServer.REQUEST_BYTES);

    /// @param bytes of an answer
    BaselineClient(int port, int bytes) throws IOException {
        rawSocket = new RawSocket(port, Math.min(bytes, 1 << 20));
        this.bytes = bytes;
    }

    @Override
    public void roundTrip(int key) throws IOException {
        rawSocket.send(request.clear().putInt(0, bytes).putInt(Integer.BYTES, key));
        rawSocket.skip(bytes);
    }

    @Override
    public void close() throws IOException {
        rawSocket.close();
    }
}
