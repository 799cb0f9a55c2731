package io.kvcache.bench.suite;

import io.kvcache.bench.jmh.BenchChains;
import io.kvcache.bench.jmh.SyntheticKv;
import io.kvcache.bench.jmh.SyntheticKv.Content;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.RemoteKvCacheBuilder;
import io.kvcache.transport.client.SharedMemoryMode;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

/// Blocks acquired over a link of 300 MB/s that come coded, beside such that come as they are; and over loopback,
/// where a client that decides by itself must not lose by it.
final class CodedLinkRounds {

    private static final long LINK_BYTES_PER_SECOND = 300_000_000;
    private static final int BLOCKS = 32;
    private static final int BLOCK_BYTES = 2 << 20;
    private static final Duration TIMEOUT = Duration.ofSeconds(30);
    private static final Namespace SPACE = Namespace.of("link", BlockShape.kv(32, 8, 128, 16, Dtype.BF16));

    private CodedLinkRounds() {}

    /// GB/s of plain bytes in a round.
    ///
    /// @param slowPlain over the slow link
    /// @param slowCoded there, coded
    /// @param slowMeasured there, by a client that decides
    /// @param fastPlain over loopback
    /// @param fastMeasured there, by a client that decides
    public record Round(
            double slowPlain, double slowCoded, double slowMeasured, double fastPlain, double fastMeasured) {}

    /// Measures so many rounds.
    public static List<Round> measure(int rounds) {
        TieredKvCache store = TieredKvCache.builder()
                .hostBytes(128L << 20)
                .checkSegments(false)
                .build();
        BlockChain chain = BenchChains.named(SPACE, "link", BLOCKS);
        try (store;
                TcpEndpoint endpoint = TcpEndpoint.open(
                        store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS);
                ThrottledRelay relay = new ThrottledRelay(endpoint.address(), LINK_BYTES_PER_SECOND);
                RemoteKvCache slowPlain = connect(builder(relay.port()).coded(false));
                RemoteKvCache slowCoded = connect(builder(relay.port()).coded(true));
                RemoteKvCache slowMeasured = connect(builder(relay.port()));
                RemoteKvCache fastPlain =
                        connect(builder(endpoint.address().getPort()).coded(false));
                RemoteKvCache fastMeasured = connect(builder(endpoint.address().getPort()))) {
            fill(store, chain);
            for (KvCache each : List.of(slowPlain, slowCoded, slowMeasured, fastPlain, fastMeasured)) {
                for (int i = 0; i < 5; i++) {
                    acquire(each, chain);
                }
            }
            return IntStream.range(0, rounds)
                    .mapToObj(_ -> new Round(
                            acquire(slowPlain, chain),
                            acquire(slowCoded, chain),
                            acquire(slowMeasured, chain),
                            acquire(fastPlain, chain),
                            acquire(fastMeasured, chain)))
                    .toList();
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    private static RemoteKvCacheBuilder builder(int port) {
        return RemoteKvCache.builder("127.0.0.1:" + port).sharedMemory(SharedMemoryMode.OFF);
    }

    private static RemoteKvCache connect(RemoteKvCacheBuilder builder) {
        RemoteKvCache cache = builder.connect();
        cache.register(SPACE);
        return cache;
    }

    private static void fill(TieredKvCache store, BlockChain chain) {
        store.register(SPACE);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment content = arena.allocate(BLOCK_BYTES, 4096);
            SyntheticKv.fill(content, Content.STRUCTURED, 8, 16, 128);
            for (int block = 0; block < BLOCKS; block++) {
                try (BlockWriter writer = store.put(chain, block, 0, TIMEOUT)) {
                    writer.segment().copyFrom(content);
                    writer.seal();
                }
            }
        }
    }

    /// @return GB/s
    private static double acquire(KvCache cache, BlockChain chain) {
        long start = System.nanoTime();
        try (BlockTable table = cache.acquire(chain)) {
            if (table.readyBlocks() != BLOCKS) {
                throw new IllegalStateException(table.readyBlocks() + " of " + BLOCKS + " blocks came");
            }
        }
        return (double) BLOCKS * BLOCK_BYTES / (System.nanoTime() - start);
    }

    /// A link whose speed is known: connections to a server of this machine, of which all that the server sends
    /// comes no faster than at a rate, of all connections together.
    ///
    /// **Ownership.** Closing it ends its connections.
    private static final class ThrottledRelay implements AutoCloseable {

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
}
