package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import io.kvcache.server.net.NettyTransport.TransportKind;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Clients that ask for more than they read at once.
@Tag("slow")
final class SlowReaderTest {

    private static final int MIB = 1 << 20;
    private static final int REQUESTS = 300;

    @ParameterizedTest
    @EnumSource(names = {"EPOLL", "IO_URING", "NIO"})
    void givenRequestsForMoreThanSocketsHold_whenTheClientReadsAtLast_thenAllComesInOrder(TransportKind transport)
            throws Exception {
        TestRequirements.assumeSockets(transport);
        byte[] value = new byte[MIB];
        new Random(3).nextBytes(value);
        try (TestServer server = TestServer.start(transport);
                Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.setSoTimeout(60_000);
            DataInputStream in = new DataInputStream(socket.getInputStream());
            OutputStream out = socket.getOutputStream();
            out.write("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048576\r\n".getBytes(US_ASCII));
            out.write(value);
            out.write("\r\n".getBytes(US_ASCII));
            Thread asking = Thread.ofVirtual().start(() -> ask(out));
            assertThat(in.readNBytes(5)).isEqualTo("+OK\r\n".getBytes(US_ASCII));
            for (int i = 0; i < REQUESTS; i++) {
                expect(in, value);
                assertThat(in.readNBytes(4)).isEqualTo("*3\r\n".getBytes(US_ASCII));
                for (int each = 0; each < 3; each++) {
                    expect(in, value);
                }
            }
            asking.join();
            assertThat(server.server().cache().stats().openTables()).isLessThan(8);
        }
    }

    private static long leaving(HttpTestClient httpTestClient) throws IOException, InterruptedException {
        return HttpTestClient.json(httpTestClient.get("/v1/stats"))
                .at("/tenants/default/traffic/leavingBytes")
                .longValue();
    }

    @Test
    @Timeout(300)
    void givenClientsThatDoNotRead_whenTheyHoldAllThatMayBe_thenOthersAreToldToTryAgainUntilTheyAreGone()
            throws Exception {
        byte[] value = new byte[32 * MIB - 48]; // three of them are half of the server's memory
        List<Socket> stuck = new ArrayList<>();
        try (TestServer server = TestServer.start(TransportKind.AUTO);
                HttpTestClient httpTestClient = new HttpTestClient(server.port())) {
            httpTestClient.put("/v1/objects/k", value);
            for (int i = 0; i < 3; i++) {
                Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port());
                socket.getOutputStream().write("GET k\r\n".getBytes(US_ASCII));
                stuck.add(socket);
            }
            while (leaving(httpTestClient) < 96L * MIB) {
                Pause.briefly(); // until all three are being answered
            }
            expectBusy(httpTestClient.get("/v1/objects/k"));
            assertThat(new String(httpTestClient.get("/metrics").body(), US_ASCII))
                    .contains("kv_reads_total{result=\"busy\",tenant=\"default\"} 1.0")
                    .containsPattern("kv_flight_bytes\\{direction=\"out\",tenant=\"default\"} 1\\.00663296E8");
            for (Socket socket : stuck) {
                socket.close();
            }
            while (leaving(httpTestClient) > 0) {
                Pause.briefly(); // until the server has seen that they are gone
            }
            assertThat(httpTestClient.get("/v1/objects/k").body()).isEqualTo(value);
            while (leaving(httpTestClient) > 0) {
                Pause.briefly(); // until the server has heard that the last bytes went out
            }
        }
    }

    private static void expectBusy(HttpResponse<byte[]> reply) {
        assertThat(reply.statusCode()).isEqualTo(503);
        assertThat(reply.headers().firstValue("Retry-After")).contains("1");
        assertThat(reply.headers().firstValue("Content-Type")).contains("application/problem+json");
        assertThat(HttpTestClient.json(reply).get("type").stringValue()).endsWith(":busy");
        assertThat(HttpTestClient.json(reply).get("detail").stringValue())
                .startsWith("limits.sending lets this tenant have 100663296 bytes on their way at one time, and ")
                .endsWith(" are; try again");
        assertThat(HttpTestClient.json(reply).get("limitBytes").longValue()).isEqualTo(96L * MIB);
    }

    private static void ask(OutputStream out) {
        try {
            for (int i = 0; i < REQUESTS; i++) {
                out.write("GET k\r\nMGET k k k\r\n".getBytes(US_ASCII));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void expect(DataInputStream in, byte[] value) throws IOException {
        assertThat(in.readNBytes(10)).isEqualTo("$1048576\r\n".getBytes(US_ASCII));
        byte[] got = in.readNBytes(MIB + 2);
        assertThat(Arrays.equals(got, 0, MIB, value, 0, MIB)).isTrue();
    }
}
