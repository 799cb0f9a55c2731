package io.kvcache.bench.transport;

import io.kvcache.bench.transport.TransferEndpoint.TransferClient;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

/// Uses a [BaselineTcpServer] over as many connections as the remote cache has, each by one thread at a time,
/// and sums what comes.
final class BaselineTcpClient implements TransferClient {

    private final BlockingQueue<Connection> idle;

    /// A connection with the buffer that it fills.
    private record Connection(SocketChannel channel, ByteBuffer head, MemorySegment block) {}

    BaselineTcpClient(int port, int connections, int maxBytes) throws IOException {
        idle = new ArrayBlockingQueue<>(connections);
        for (int i = 0; i < connections; i++) {
            SocketChannel channel = SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            MemorySegment block = Arena.ofAuto().allocate(maxBytes, 4096);
            idle.add(new Connection(channel, ByteBuffer.allocateDirect(SummingSocketIo.HEAD_BYTES), block));
        }
    }

    @Override
    public boolean transfer(TransferSpec transferSpec, long number) throws IOException, InterruptedException {
        Connection connection = idle.take();
        try {
            boolean good = true;
            for (int block = 0; block < transferSpec.operation().blockCount(); block++) {
                good &= transferSpec.operation().isPut()
                        ? put(connection, transferSpec.bytes())
                        : get(connection, transferSpec.bytes());
            }
            return good;
        } finally {
            idle.add(connection);
        }
    }

    private static boolean get(Connection connection, int bytes) throws IOException {
        ByteBuffer head = connection.head.clear();
        head.putInt(0, 0).putInt(4, bytes);
        SummingSocketIo.write(connection.channel, head);
        SummingSocketIo.read(connection.channel, head.clear());
        int sum = SummingSocketIo.readSummed(
                connection.channel, connection.block.asSlice(0, bytes).asByteBuffer());
        return sum != 0;
    }

    private static boolean put(Connection connection, int bytes) throws IOException {
        ByteBuffer block = connection.block.asSlice(0, bytes).asByteBuffer();
        ByteBuffer head = connection.head.clear();
        head.putInt(0, 1).putInt(4, bytes).putLong(8, SummingSocketIo.sum(block));
        SummingSocketIo.write(connection.channel, head, block);
        SummingSocketIo.read(connection.channel, head.clear());
        return head.getLong(8) == 0;
    }

    @Override
    public void close() throws IOException {
        for (Connection connection : idle) {
            connection.channel.close();
        }
    }
}
