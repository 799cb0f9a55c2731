package io.kvcache.bench.transport;

import io.kvcache.bench.transport.TransferEndpoint.TransferClient;
import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.SplittableRandom;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.zip.CRC32C;

/// Moving bytes over a socket, and summing them as the remote cache does.
final class BaselineTcp {

    /// Size of the head of a bare request or reply.
    static final int HEAD_BYTES = 16;

    private static final int CHUNK_BYTES = 256 << 10;

    private BaselineTcp() {}

    static void read(SocketChannel from, ByteBuffer to) throws IOException {
        while (to.hasRemaining()) {
            if (from.read(to) < 0) {
                throw new EOFException("the other side has closed");
            }
        }
    }

    /// Reads to the limit and sums on the way.
    static int readSummed(SocketChannel from, ByteBuffer to) throws IOException {
        CRC32C crc = new CRC32C();
        int end = to.limit();
        while (to.position() < end) {
            int start = to.position();
            to.limit(Math.min(end, start + CHUNK_BYTES));
            if (from.read(to) < 0) {
                throw new EOFException("the other side has closed");
            }
            crc.update(to.duplicate().flip().position(start));
            to.limit(end);
        }
        return (int) crc.getValue();
    }

    static int sum(ByteBuffer of) {
        CRC32C crc = new CRC32C();
        crc.update(of.duplicate());
        return (int) crc.getValue();
    }

    static void write(SocketChannel to, ByteBuffer... all) throws IOException {
        while (all[all.length - 1].hasRemaining()) {
            to.write(all);
        }
    }

    /// Uses a [BaselineTcpServer] over as many connections as the remote cache has, each by one thread at a time,
    /// and sums what comes.
    static final class BaselineTcpClient implements TransferClient {

        private final BlockingQueue<Connection> idle;

        /// A connection with the buffer that it fills.
        private record Connection(SocketChannel channel, ByteBuffer head, MemorySegment block) {}

        BaselineTcpClient(int port, int connections, int maxBytes) throws IOException {
            idle = new ArrayBlockingQueue<>(connections);
            for (int i = 0; i < connections; i++) {
                SocketChannel channel =
                        SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
                channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
                MemorySegment block = Arena.ofAuto().allocate(maxBytes, 4096);
                idle.add(new Connection(channel, ByteBuffer.allocateDirect(BaselineTcp.HEAD_BYTES), block));
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
            BaselineTcp.write(connection.channel, head);
            BaselineTcp.read(connection.channel, head.clear());
            int sum = BaselineTcp.readSummed(
                    connection.channel, connection.block.asSlice(0, bytes).asByteBuffer());
            return sum != 0;
        }

        private static boolean put(Connection connection, int bytes) throws IOException {
            ByteBuffer block = connection.block.asSlice(0, bytes).asByteBuffer();
            ByteBuffer head = connection.head.clear();
            head.putInt(0, 1).putInt(4, bytes).putLong(8, BaselineTcp.sum(block));
            BaselineTcp.write(connection.channel, head, block);
            BaselineTcp.read(connection.channel, head.clear());
            return head.getLong(8) == 0;
        }

        @Override
        public void close() throws IOException {
            for (Connection connection : idle) {
                connection.channel.close();
            }
        }
    }

    /// The least that a server can do: a thread a connection, one buffer of bytes from which it answers and
    /// into which it takes, no index, no lease. What it takes it sums, as every server must that promises
    /// whole bytes.
    ///
    /// A request is `u32 put, u32 bytes, u64 checksum`, and bytes if it puts; a reply is `u64 0, u64
    /// checksum`, and bytes if it gets.
    static final class BaselineTcpServer {

        /// As much as no cache of a processor holds.
        private static final long MEMORY = 512L << 20;

        private final MemorySegment memory = Arena.global().allocate(MEMORY, 4096);
        private final ServerSocketChannel listener;

        BaselineTcpServer() throws IOException {
            memory.fill((byte) 3);
            listener = ServerSocketChannel.open().bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            Thread.ofPlatform().daemon().start(this::accept);
        }

        int port() throws IOException {
            return ((InetSocketAddress) listener.getLocalAddress()).getPort();
        }

        private void accept() {
            try {
                while (true) {
                    SocketChannel client = listener.accept();
                    client.setOption(StandardSocketOptions.TCP_NODELAY, true);
                    Thread.ofPlatform().daemon().start(() -> serve(client));
                }
            } catch (IOException closed) {
                // The run is over.
            }
        }

        private void serve(SocketChannel client) {
            SplittableRandom random = new SplittableRandom(1);
            ByteBuffer head = ByteBuffer.allocateDirect(BaselineTcp.HEAD_BYTES);
            try (client) {
                while (true) {
                    BaselineTcp.read(client, head.clear());
                    boolean put = head.getInt(0) != 0;
                    int bytes = head.getInt(4);
                    long slot = random.nextLong(MEMORY / bytes);
                    ByteBuffer block = memory.asSlice(slot * bytes, bytes).asByteBuffer();
                    if (put) {
                        int found = BaselineTcp.readSummed(client, block);
                        head.putLong(8, found - head.getLong(8));
                        BaselineTcp.write(client, head.clear());
                    } else {
                        BaselineTcp.write(client, head.clear(), block);
                    }
                }
            } catch (IOException over) {
                // The client has what it wanted.
            }
        }
    }
}
