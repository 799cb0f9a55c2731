package io.kvcache.bench.transport;

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

/// The least that a server can do: a thread a connection, one buffer of bytes from which it answers and
/// into which it takes, no index, no lease. What it takes it sums, as every server must that promises
/// whole bytes.
///
/// A request is `u32 put, u32 bytes, u64 checksum`, and bytes if it puts; a reply is `u64 0, u64
/// checksum`, and bytes if it gets.
final class BaselineTcpServer {

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
        ByteBuffer head = ByteBuffer.allocateDirect(SummingSocketIo.HEAD_BYTES);
        try (client) {
            while (true) {
                SummingSocketIo.read(client, head.clear());
                boolean put = head.getInt(0) != 0;
                int bytes = head.getInt(4);
                long slot = random.nextLong(MEMORY / bytes);
                ByteBuffer block = memory.asSlice(slot * bytes, bytes).asByteBuffer();
                if (put) {
                    int found = SummingSocketIo.readSummed(client, block);
                    head.putLong(8, found - head.getLong(8));
                    SummingSocketIo.write(client, head.clear());
                } else {
                    SummingSocketIo.write(client, head.clear(), block);
                }
            }
        } catch (IOException over) {
            // The client has what it wanted.
        }
    }
}
