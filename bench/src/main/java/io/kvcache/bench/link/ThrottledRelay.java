package io.kvcache.bench.link;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// A link whose speed is known: connections to a server of this machine, of which all that the server sends comes no
/// faster than at a rate, of all connections together.
///
/// **Ownership.** Closing it ends its connections.
final class ThrottledRelay implements AutoCloseable {

    private static final int CHUNK_BYTES = 64 << 10;

    /// A thread that wakes up late catches up.
    private static final long MAX_LATE_NANOS = 2_000_000;

    private final ServerSocketChannel listening;
    private final InetSocketAddress server;
    private final double bytesPerNano;
    private final Set<SocketChannel> open = ConcurrentHashMap.newKeySet();
    private long freeAt = System.nanoTime();

    /// @param server that clients get to
    ThrottledRelay(InetSocketAddress server, long bytesPerSecond) throws IOException {
        this.server = server;
        bytesPerNano = (double) bytesPerSecond / TimeUnit.SECONDS.toNanos(1);
        listening = ServerSocketChannel.open().bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        start("accept", this::accept);
    }

    /// The port that clients connect to.
    int port() {
        return listening.socket().getLocalPort();
    }

    private static void start(String name, Runnable work) {
        Thread.ofPlatform().daemon().name("kvcache-relay-" + name).start(work);
    }

    private void accept() {
        try {
            while (true) {
                SocketChannel client = listening.accept();
                SocketChannel target = SocketChannel.open(server);
                for (SocketChannel each : Set.of(client, target)) {
                    each.setOption(StandardSocketOptions.TCP_NODELAY, true);
                    open.add(each);
                }
                start("up", () -> copy(client, target, false));
                start("down", () -> copy(target, client, true));
            }
        } catch (IOException closed) {
            // The relay is closed.
        }
    }

    private void copy(SocketChannel from, SocketChannel to, boolean paced) {
        ByteBuffer buffer = ByteBuffer.allocateDirect(CHUNK_BYTES);
        try (from;
                to) {
            while (from.read(buffer.clear()) >= 0) {
                buffer.flip();
                if (paced) {
                    waitFor(buffer.remaining());
                }
                while (buffer.hasRemaining()) {
                    to.write(buffer);
                }
            }
        } catch (IOException closed) {
            // One side has ended, or the relay is closed.
        }
    }

    /// Waits until the link has carried so many bytes.
    private void waitFor(int bytes) {
        long due;
        synchronized (this) {
            freeAt = Math.max(freeAt, System.nanoTime() - MAX_LATE_NANOS) + (long) (bytes / bytesPerNano);
            due = freeAt;
        }
        for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
            LockSupport.parkNanos(this, left);
        }
    }

    @Override
    public void close() {
        try {
            listening.close();
            for (SocketChannel each : open) {
                each.close();
            }
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }
}
