package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.NettyTransport.TransportKind;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// How long requests took, as operators read it.
@Tag("slow")
final class LatencyEndpointsTest {

    private static void ask(TestServer server, byte[] request, int replyBytes) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.setSoTimeout(60_000);
            socket.getOutputStream().write(request);
            assertThat(socket.getInputStream().readNBytes(replyBytes)).hasSize(replyBytes);
        }
    }

    /// HEALTH in the newest layout.
    private static byte[] health() {
        ByteBuffer request = ByteBuffer.allocate(186).order(ByteOrder.LITTLE_ENDIAN);
        request.putInt(5).position(36);
        while (request.hasRemaining()) {
            request.put((byte) ' ');
        }
        return request.array();
    }

    @Test
    void givenRequestsOfEveryProtocol_whenAnswered_thenTheirTimesAreTold() throws Exception {
        try (TestServer server = TestServer.start(TransportKind.AUTO);
                HttpTestClient httpTestClient = new HttpTestClient(server.port())) {
            httpTestClient.put("/v1/objects/k", "value");
            httpTestClient.get("/v1/objects/k");
            httpTestClient.get("/v1/objects/nothing");
            httpTestClient.get("/nosuch");
            ask(server, "SET a b\r\nGET a\r\nGET a\r\nNOSUCH\r\n".getBytes(US_ASCII), 5 + 7 + 7 + 10);
            ask(server, health(), 36);

            String text = new String(httpTestClient.get("/metrics").body(), US_ASCII);
            assertThat(text)
                    .contains("# TYPE kv_request_seconds histogram")
                    .contains("kv_request_seconds_count{protocol=\"http\",verb=\"get_objects\"} 2\n")
                    .contains("kv_request_seconds_count{protocol=\"http\",verb=\"put_objects\"} 1\n")
                    .contains("kv_request_seconds_count{protocol=\"http\",verb=\"other\"} 1\n")
                    .contains("kv_request_seconds_count{protocol=\"resp\",verb=\"get\"} 2\n")
                    .contains("kv_request_seconds_count{protocol=\"resp\",verb=\"set\"} 1\n")
                    .contains("kv_request_seconds_count{protocol=\"resp\",verb=\"unknown\"} 1\n")
                    .contains("kv_request_seconds_count{protocol=\"lm\",verb=\"health\"} 1\n")
                    .contains("kv_request_seconds_bucket{protocol=\"resp\",verb=\"get\",le=\"+Inf\"} 2\n")
                    .contains("le=\"1.0E-5\"");
            assertThat(HttpTestClient.json(httpTestClient.get("/v1/stats"))
                            .get("latency")
                            .get("resp get")
                            .get("count")
                            .intValue())
                    .isEqualTo(2);
            assertThat(HttpTestClient.json(httpTestClient.get("/v1/stats"))
                            .at("/namespaces/0/name")
                            .stringValue())
                    .isEqualTo("objects");
        }
    }
}
