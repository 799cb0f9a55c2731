package io.kvcache.bench.transport;

import io.kvcache.bench.server.RespConnection;
import io.kvcache.bench.transport.TransferEndpoint.TransferClient;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;

/// Gets and sets the same blocks at a Redis, over as many connections as the remote cache has. It does no more than the
/// bare client: it computes a checksum of all bytes.
final class RedisTransferClient implements TransferClient {

    private static final String LINE_END = "\r\n";
    private static final ByteBuffer LINE_END_BYTES = ascii(LINE_END);
    private static final String STORED = "+OK\r\n";

    private final BlockingQueue<Connection> idle;
    private final AtomicInteger puts = new AtomicInteger();

    private record Connection(RespConnection resp, MemorySegment block) {

        ByteBuffer value(int bytes) {
            return block.asSlice(0, bytes).asByteBuffer();
        }

        void set(int seed, int bytes) throws IOException {
            ByteBuffer head = ascii(RespConnection.setHead(key(seed), bytes));
            BaselineTcp.write(resp.channel(), head, value(bytes), LINE_END_BYTES.duplicate());
            resp.expect(STORED);
        }

        void get(int seed, int bytes) throws IOException {
            resp.send(RespConnection.command("GET", key(seed)));
            resp.expect("$" + bytes + LINE_END);
            BaselineTcp.readSummed(resp.channel(), value(bytes));
            resp.expect(LINE_END);
        }
    }

    RedisTransferClient(int port, int connections, int maxBytes) throws IOException {
        idle = new ArrayBlockingQueue<>(connections);
        for (int i = 0; i < connections; i++) {
            MemorySegment block = Arena.ofAuto().allocate(maxBytes, 4096);
            idle.add(new Connection(new RespConnection(port, 0), block.fill((byte) 3)));
        }
    }

    private static ByteBuffer ascii(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII));
    }

    private static String key(int seed) {
        return "block-" + seed;
    }

    /// Replaces all keys by the blocks to get.
    void setBlocks(int bytes) throws IOException, InterruptedException {
        Connection connection = idle.take();
        try {
            connection.resp.send(RespConnection.command("FLUSHALL"));
            connection.resp.expect(STORED);
            for (int seed = 0; seed < RemoteTransferClient.blocks(bytes); seed++) {
                connection.set(seed, bytes);
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
                    BaselineTcp.sum(connection.value(bytes));
                    connection.set(RemoteTransferClient.blocks(bytes) + puts.incrementAndGet(), bytes);
                } else {
                    connection.get((int) (number * 7919 & (RemoteTransferClient.blocks(bytes) - 1)), bytes);
                }
            }
            return true;
        } finally {
            idle.add(connection);
        }
    }

    @Override
    public void close() throws IOException {
        for (Connection connection : idle) {
            connection.resp.close();
        }
    }
}
