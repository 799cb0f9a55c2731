package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.DiskConfig;
import io.kvcache.server.config.DisksConfig;
import io.kvcache.server.config.ListenConfig;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.TransportKind;
import io.kvcache.tiers.disk.DiskLogConfig.OnIncompatible;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/// A server of 192 MiB of host memory over a disk of 1 GiB, and values of 2 MiB and a bit that are more than fit the
/// memory.
final class DiskServer implements AutoCloseable {

    static final int VALUES = 120;

    private static final int VALUE_BYTES = (2 << 20) + 12_345;
    private static final int FLUSH_EVERY = 20;

    private final TestServer server;

    DiskServer(Path folder) {
        this(folder, AccessConfig.of(ListenConfig.local(0)));
    }

    DiskServer(Path folder, AccessConfig access) {
        server = TestServer.start(
                TransportKind.AUTO,
                NetLimits.defaults(),
                new DisksConfig(
                        List.of(new DiskConfig("disks.0", folder, 1L << 30, 0, 0, OnIncompatible.REFUSE)),
                        AdmissionKind.ALWAYS,
                        Duration.ofSeconds(60)),
                access);
    }

    CacheServer server() {
        return server.server();
    }

    /// The port of a listener, by its place in the configuration.
    int port(int listener) {
        return server.port(listener);
    }

    int port() {
        return server.port();
    }

    Socket connect() throws IOException {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), port());
        socket.setSoTimeout(60_000);
        return socket;
    }

    static byte[] value(int number) {
        byte[] value = new byte[VALUE_BYTES];
        new Random(number).nextBytes(value);
        return value;
    }

    /// Writes all values, key `v0` and up, and lets the disk keep pace.
    void fill() throws IOException {
        try (Socket socket = connect()) {
            OutputStream out = socket.getOutputStream();
            for (int number = 0; number < VALUES; number++) {
                byte[] value = value(number);
                String key = "v" + number;
                out.write(
                        ascii("*3\r\n$3\r\nSET\r\n$" + key.length() + "\r\n" + key + "\r\n$" + value.length + "\r\n"));
                out.write(value);
                out.write(ascii("\r\n"));
                assertThat(socket.getInputStream().readNBytes(5)).isEqualTo(ascii("+OK\r\n"));
                if (number % FLUSH_EVERY == 0 || number == VALUES - 1) {
                    assertThat(server().cache().flush(TimeUnit.SECONDS.toNanos(60)))
                            .isTrue();
                }
            }
        }
    }

    /// Values read from disk so far.
    long loaded() {
        return server().cache().diskStats().getFirst().loaded();
    }

    static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    @Override
    public void close() {
        server.close();
    }
}
