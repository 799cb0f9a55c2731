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
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;

/// Gets and sets the same blocks at a Redis, over as many connections as the remote cache has, by a client that
/// does no more than the bare one: it sums what comes and goes.
final class RedisTransferClient implements TransferClient {

    private static final int HEAD_BYTES = 128;
    private static final ByteBuffer END = ascii("\r\n");
    private static final ByteBuffer STORED = ascii("+OK\r\n");

    private final BlockingQueue<Connection> idle;
    private final AtomicInteger puts = new AtomicInteger();

    private record Connection(SocketChannel channel, ByteBuffer head, MemorySegment block) {}

    RedisTransferClient(int port, int connections, int maxBytes) throws IOException {
        idle = new ArrayBlockingQueue<>(connections);
        for (int i = 0; i < connections; i++) {
            SocketChannel channel = SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            MemorySegment block = Arena.ofAuto().allocate(maxBytes, 4096);
            idle.add(new Connection(channel, ByteBuffer.allocateDirect(HEAD_BYTES), block.fill((byte) 3)));
        }
    }

    private static ByteBuffer ascii(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII));
    }

    /// Sets what is to be got, in place of what was there.
    void setBlocks(int bytes) throws IOException, InterruptedException {
        Connection connection = idle.take();
        try {
            BaselineTcp.write(connection.channel, ascii("*1\r\n$8\r\nFLUSHALL\r\n"));
            expect(connection, STORED);
            for (int seed = 0; seed < RemoteTransferClient.blocks(bytes); seed++) {
                set(connection, seed, bytes);
            }
        } finally {
            idle.add(connection);
        }
    }

    @Override
    public boolean transfer(TransferSpec transferSpec, long number) throws IOException, InterruptedException {
        int bytes = transferSpec.bytes();
        Connection connection = idle.take();
        try {
            for (int block = 0; block < transferSpec.operation().blockCount(); block++) {
                if (transferSpec.operation().isPut()) {
                    BaselineTcp.sum(readPart(connection, bytes));
                    set(connection, RemoteTransferClient.blocks(bytes) + puts.incrementAndGet(), bytes);
                } else {
                    get(connection, (int) (number * 7919 & (RemoteTransferClient.blocks(bytes) - 1)), bytes);
                }
            }
            return true;
        } finally {
            idle.add(connection);
        }
    }

    private static ByteBuffer readPart(Connection connection, int bytes) {
        return connection.block.asSlice(0, bytes).asByteBuffer();
    }

    private static void set(Connection connection, int seed, int bytes) throws IOException {
        String key = key(seed);
        ByteBuffer head = ascii("*3\r\n$3\r\nSET\r\n$" + key.length() + "\r\n" + key + "\r\n$" + bytes + "\r\n");
        BaselineTcp.write(connection.channel, head, readPart(connection, bytes), END.duplicate());
        expect(connection, STORED);
    }

    private static void get(Connection connection, int seed, int bytes) throws IOException {
        String key = key(seed);
        BaselineTcp.write(connection.channel, ascii("*2\r\n$3\r\nGET\r\n$" + key.length() + "\r\n" + key + "\r\n"));
        expect(connection, ascii("$" + bytes + "\r\n"));
        BaselineTcp.readSummed(connection.channel, readPart(connection, bytes));
        expect(connection, END);
    }

    private static String key(int seed) {
        return "block-" + seed;
    }

    private static void expect(Connection connection, ByteBuffer wanted) throws IOException {
        ByteBuffer head = connection.head.clear().limit(wanted.remaining());
        BaselineTcp.read(connection.channel, head);
        if (!head.flip().equals(wanted)) {
            throw new IOException(
                    "Redis answers otherwise than " + StandardCharsets.US_ASCII.decode(wanted.duplicate()));
        }
    }

    @Override
    public void close() throws IOException {
        for (Connection connection : idle) {
            connection.channel.close();
        }
    }
}
