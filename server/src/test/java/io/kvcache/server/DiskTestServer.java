package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.DiskTierConfig;
import io.kvcache.server.config.DiskTierConfig.DiskConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.RecomputeConfig;
import io.kvcache.server.lm.LmTestClient;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.NettyTransport.TransportKind;
import io.kvcache.tiers.options.OnIncompatible;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntFunction;

/// A server of 192 MiB of host memory over a disk of 1 GiB, and values of 2 MiB and a bit that are more than fit
/// the memory.
final class DiskTestServer implements AutoCloseable {

    static final int VALUES = 120;

    private static final int VALUE_BYTES = (2 << 20) + 12_345;
    private static final int FLUSH_EVERY = 20;

    private final TestServer server;

    DiskTestServer(Path folder) {
        this(folder, TestServer.access(ListenerConfig.onLoopback(0)));
    }

    DiskTestServer(Path folder, AccessConfig access) {
        this(
                new DiskTierConfig(
                        disks(folder),
                        List.of(),
                        AdmissionKind.ALWAYS,
                        Duration.ofSeconds(60),
                        false,
                        RecomputeConfig.defaults()),
                access);
    }

    /// @param prefetch whether values come from disk ahead of their readers
    DiskTestServer(Path folder, boolean prefetch, RecomputeConfig prefill) {
        this(
                new DiskTierConfig(
                        disks(folder), List.of(), AdmissionKind.ALWAYS, Duration.ofSeconds(60), prefetch, prefill),
                TestServer.access(ListenerConfig.onLoopback(0)));
    }

    private DiskTestServer(DiskTierConfig disks, AccessConfig access) {
        server = TestServer.start(TransportKind.AUTO, NetLimits.defaults(), disks, access);
    }

    private static List<DiskConfig> disks(Path folder) {
        return List.of(new DiskConfig("disks.0", folder, 1L << 30, 0, 0, OnIncompatible.REFUSE, true));
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
        BlockContent.of(0, number).fill(MemorySegment.ofArray(value));
        return value;
    }

    /// Writes all values, key `v0` and up, and lets the disk keep pace.
    void fill() throws IOException {
        fill(number -> "v" + number);
    }

    /// Writes all values under keys by their numbers, and lets the disk keep pace.
    void fill(IntFunction<String> key) throws IOException {
        try (Socket socket = connect()) {
            for (int number = 0; number < VALUES; number++) {
                set(socket, key.apply(number), value(number));
                if (number % FLUSH_EVERY == 0 || number == VALUES - 1) {
                    assertThat(server().cache().flush(Duration.ofSeconds(60))).isTrue();
                }
            }
        }
    }

    static void set(Socket socket, String key, byte[] value) throws IOException {
        OutputStream out = socket.getOutputStream();
        out.write(ascii("*3\r\n$3\r\nSET\r\n$" + key.length() + "\r\n" + key + "\r\n$" + value.length + "\r\n"));
        out.write(value);
        out.write(ascii("\r\n"));
        assertThat(socket.getInputStream().readNBytes(5)).isEqualTo(ascii("+OK\r\n"));
    }

    /// Reads a value that has to be there, and compares it.
    static void get(Socket socket, String key, byte[] value) throws IOException {
        socket.getOutputStream().write(ascii("GET " + key + "\r\n"));
        byte[] head = ascii("$" + value.length + "\r\n");
        assertThat(socket.getInputStream().readNBytes(head.length)).isEqualTo(head);
        assertThat(Arrays.equals(socket.getInputStream().readNBytes(value.length), value))
                .as(key)
                .isTrue();
        assertThat(socket.getInputStream().readNBytes(2)).isEqualTo(ascii("\r\n"));
    }

    /// The key of a chunk of LMCache's.
    static String chunk(int number) {
        return "vllm@model@1@0@%012x".formatted(0xABCDEF000000L + number);
    }

    /// A request of `lm://`.
    static byte[] lmRequest(int command, String key) {
        return new LmTestClient().ask(command, key);
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
