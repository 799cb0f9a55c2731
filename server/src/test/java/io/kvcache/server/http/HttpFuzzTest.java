package io.kvcache.server.http;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.access.Door;
import io.kvcache.server.access.Logins;
import io.kvcache.server.block.BlockArea;
import io.kvcache.server.block.BlockNamespaces;
import io.kvcache.server.block.BlockStocks;
import io.kvcache.server.block.NamespaceArea;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.net.CloseReason;
import io.kvcache.server.net.Connections;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.Wire;
import io.kvcache.server.quota.InFlight;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// Random and mutated requests: no bug is hit, no buffer and no slot is left behind.
final class HttpFuzzTest {

    private static final int FRAMES = Integer.getInteger("kvcache.fuzz.frames", 50_000);
    private static final long SEED = Long.getLong("kvcache.fuzz.seed", System.nanoTime());
    private static final List<String> METHODS = List.of("GET", "PUT", "HEAD", "DELETE", "POST", "OPTIONS", "NOSUCH");
    private static final List<String> PATHS = List.of(
            "/v1/objects/a",
            "/v1/objects/%00%ff",
            "/v1/objects/%zz",
            "/v1/blocks/match",
            "/v1/blocks/m/00",
            "/v1/blocks/%zz/1",
            "/v1/namespaces/m",
            "/v1/objects/",
            "/page",
            "*",
            "/%",
            "/v1/objects/b");
    private static final List<String> HEADERS = List.of(
            "Host: localhost",
            "Host: [::1",
            "Host: a.b",
            "Origin: http://x",
            "Range: bytes=1-",
            "Range: bytes=-",
            "Expect: 100-continue",
            "Connection: close",
            "Transfer-Encoding: chunked",
            "Content-Length: -1",
            "Content-Length: 99999999999",
            "Content-Length: 2147483648",
            "X: \001",
            "Range: bytes=9999999999999999999-");

    @Test
    void givenRequestsThatNobodyMeant_whenSent_thenNothingBreaksAndNothingIsLeft() {
        System.out.println("fuzz: -Dkvcache.fuzz.seed=" + SEED + " -Dkvcache.fuzz.frames=" + FRAMES);
        Random random = new Random(SEED);
        try (TestKeyspace test = TestKeyspace.small()) {
            Connections connections = new Connections(NetLimits.defaults(), test.time());
            InFlight arriving = InFlight.unlimited();
            BlockNamespaces namespaces = new BlockNamespaces(test.cache());
            HttpProtocol protocol = new HttpProtocol(new HttpSite(
                    Door.open(Logins.none(test.time())),
                    Map.of("default", test.keyspace()),
                    Map.of("/page", Page.of("text/plain", () -> "page")),
                    List.of(
                            new NamespaceArea(namespaces),
                            new BlockArea(
                                    test.cache(),
                                    namespaces,
                                    Duration.ZERO,
                                    BlockStocks.none(test.cache()),
                                    new BlockArea.OnTheWay(_ -> arriving, _ -> InFlight.unlimited()))),
                    Set.of()));
            register(protocol, connections);
            for (int sent = 0; sent < FRAMES; ) {
                try (Wire wire = new Wire(protocol, connections)) {
                    for (int i = 0; i < 20 && wire.isOpen(); i++, sent++) {
                        byte[] frame = request(random);
                        if (random.nextInt(4) == 0) {
                            frame[random.nextInt(Math.min(frame.length, 80))] = (byte) random.nextInt(256);
                        }
                        int cut = random.nextInt(frame.length);
                        wire.send(Arrays.copyOf(frame, cut)).send(Arrays.copyOfRange(frame, cut, frame.length));
                    }
                    wire.bytes();
                }
            }
            assertThat(connections.closedCount(CloseReason.BUG)).isZero();
            assertThat(connections.closedCount(CloseReason.IO_ERROR)).isZero();
            assertThat(arriving.bytes()).as("of blocks, still on their way").isZero();
            assertThat(protocol.requestCount()).isGreaterThan(FRAMES / 10);
            test.time().pass(Duration.ofMinutes(1));
            test.keyspace().tick();
            test.keyspace().clear();
            test.cache().stats().namespaces().forEach(each -> test.cache().drop(each.namespace()));
            assertThat(test.cache().stats().host().heldBytes()).isZero();
        }
    }

    /// A namespace whose blocks have 16 bytes.
    private static void register(HttpProtocol protocol, Connections connections) {
        String shape = "{\"shape\":{\"layers\":1,\"planes\":1,\"kvHeads\":1,\"headDim\":1,"
                + "\"blockTokens\":16,\"dtype\":\"int8\"}}";
        try (Wire wire = new Wire(protocol, connections)) {
            wire.send(("PUT /v1/namespaces/m HTTP/1.1\r\nContent-Length: " + shape.length() + "\r\n\r\n" + shape)
                    .getBytes(StandardCharsets.US_ASCII));
            assertThat(new String(wire.bytes(), StandardCharsets.US_ASCII)).startsWith("HTTP/1.1 201 ");
        }
    }

    private static byte[] request(Random random) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        StringBuilder head = new StringBuilder()
                .append(METHODS.get(random.nextInt(METHODS.size())))
                .append(' ')
                .append(PATHS.get(random.nextInt(PATHS.size())))
                .append(" HTTP/1.1\r\n");
        for (int i = random.nextInt(3); i > 0; i--) {
            head.append(HEADERS.get(random.nextInt(HEADERS.size()))).append("\r\n");
        }
        byte[] body = new byte[random.nextInt(3) == 0 ? random.nextInt(2) == 0 ? 16 : random.nextInt(5000) : 0];
        if (body.length > 0) {
            head.append("Content-Length: ").append(body.length).append("\r\n");
        }
        out.writeBytes(head.append("\r\n").toString().getBytes(StandardCharsets.ISO_8859_1));
        out.writeBytes(body);
        return out.toByteArray();
    }
}
