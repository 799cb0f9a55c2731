package io.kvcache.bench.server;

import io.kvcache.bench.server.LoadGenerator.BenchClient;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

/// A server that does nothing but send: what this machine's network allows, without protocol, keys or store.
///
/// A request is 64 bytes and says how many it wants and which; the answer comes from half a GiB of memory, as much
/// as the values that it is compared with take, since what is in a cache is sent faster. A thread a connection, which
/// waits in the read itself: no server can wait shorter.
final class BaselineServer {

    static final int REQUEST_BYTES = 64;

    private static final int MEMORY_BYTES = 512 << 20;

    private final ByteBuffer memory = ByteBuffer.allocateDirect(MEMORY_BYTES);

    private BaselineServer() {}

    /// Serves until it is killed.
    ///
    /// @param args the port to listen at
    public static void main(String[] args) throws IOException {
        BaselineServer baselineServer = new BaselineServer();
        try (ServerSocketChannel listener = ServerSocketChannel.open()
                .bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(args[0])))) {
            while (true) {
                SocketChannel client = listener.accept();
                Thread.ofPlatform().daemon().start(() -> baselineServer.serve(client));
            }
        }
    }

    private void serve(SocketChannel client) {
        ByteBuffer request = ByteBuffer.allocateDirect(REQUEST_BYTES);
        try (client) {
            client.setOption(StandardSocketOptions.TCP_NODELAY, true);
            while (client.read(request) >= 0) {
                if (!request.hasRemaining()) {
                    answer(client, request.getInt(0), request.getInt(Integer.BYTES));
                    request.clear();
                }
            }
        } catch (IOException gone) {
            // The client has ended its measurement.
        }
    }

    private void answer(SocketChannel client, int bytes, int key) throws IOException {
        ByteBuffer value = memory.slice(Math.floorMod((long) key * bytes, MEMORY_BYTES - bytes + 1), bytes);
        while (value.hasRemaining()) {
            client.write(value);
        }
    }

    /// One connection to a [BaselineServer].
    static final class BaselineClient implements BenchClient {

        private final RespConnection connection;
        private final int bytes;
        private final ByteBuffer request = ByteBuffer.allocateDirect(BaselineServer.REQUEST_BYTES);

        /// @param bytes of an answer
        BaselineClient(int port, int bytes) throws IOException {
            connection = new RespConnection(port, Math.min(bytes, 1 << 20));
            this.bytes = bytes;
        }

        @Override
        public void roundTrip(int key) throws IOException {
            connection.send(request.clear().putInt(0, bytes).putInt(Integer.BYTES, key));
            connection.skip(bytes);
        }

        @Override
        public void close() throws IOException {
            connection.close();
        }
    }
}
