package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.net.TestCertificate;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// An interrupt ends the call of its thread, and nothing of the threads that share its cache.
@Timeout(300)
@Tag("slow")
final class RemoteInterruptsTest {

    private static final int INTERRUPTS = Repetitions.usualOrFull(750, 20_000);
    private static final long PAUSE_NANOS = 2_000_000;
    private static final int HELD_BLOCKS = 4;

    @TempDir
    private Path folder = Path.of("");

    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(128 << 20)
            .prefaultInBackground(false)
            .failOnLeak(true)
            .build();

    @AfterEach
    void close() {
        store.close();
    }

    @Test
    void givenTcp_whenAThreadIsInterrupted_thenOthersMissNothing() throws Exception {
        try (TcpEndpoint endpoint = LoopbackServers.serve(store);
                RemoteKvCache cache = RemoteKvCache.builder(
                                "127.0.0.1:" + endpoint.address().getPort())
                        .requestTimeout(TestBlocks.PATIENCE)
                        .sharedMemory(SharedMemoryMode.OFF)
                        .connect()) {
            interrupt(store, cache);
        }
    }

    @Test
    void givenTls_whenAThreadIsInterrupted_thenOthersMissNothing() throws Exception {
        TestCertificate certificate = TestCertificate.make(folder, "good", "IP:127.0.0.1");
        try (TcpEndpoint endpoint = TcpEndpoint.open(
                        store,
                        new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
                        EndpointOptions.DEFAULTS,
                        certificate.engines());
                RemoteKvCache cache = RemoteKvCache.builder(
                                "tls:127.0.0.1:" + endpoint.address().getPort())
                        .trust(certificate.pem())
                        .requestTimeout(TestBlocks.PATIENCE)
                        .connect()) {
            interrupt(store, cache);
        }
    }

    /// One thread is interrupted again and again while it puts, reads and asks. Two others read what is stored.
    static void interrupt(TieredKvCache store, RemoteKvCache cache) throws Exception {
        cache.register(TestBlocks.SPACE);
        BlockChain held = TestBlocks.stored(store, 1, HELD_BLOCKS);
        AtomicBoolean ended = new AtomicBoolean();
        CompletableFuture<Void> first = reads(cache, held, ended);
        CompletableFuture<Void> second = reads(cache, held, ended);
        Thread victim = Thread.ofPlatform().start(() -> {
            for (int i = 0; !ended.get(); i++) {
                BlockChain own = TestBlocks.chain(2 + i % 4, 8);
                TestBlocks.put(cache, own, i % 8);
                TestBlocks.verified(cache, i % 3 == 0 ? held : own);
                cache.match(own);
                Thread.interrupted();
            }
        });
        for (int i = 0; i < INTERRUPTS && !first.isDone() && !second.isDone(); i++) {
            victim.interrupt();
            LockSupport.parkNanos(PAUSE_NANOS);
        }
        ended.set(true);
        first.get();
        second.get();
        victim.join();
        assertThat(cache.remoteStats().sessions()).isOne();
        assertThat(TestBlocks.verified(cache, held)).isEqualTo(HELD_BLOCKS);
    }

    private static CompletableFuture<Void> reads(RemoteKvCache cache, BlockChain held, AtomicBoolean ended) {
        return CompletableFuture.runAsync(
                () -> {
                    while (!ended.get()) {
                        assertThat(cache.match(held).blocks()).isEqualTo(HELD_BLOCKS);
                        assertThat(TestBlocks.verified(cache, held)).isEqualTo(HELD_BLOCKS);
                    }
                },
                work -> Thread.ofPlatform().start(work));
    }
}
