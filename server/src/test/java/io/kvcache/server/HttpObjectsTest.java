package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.NettyTransport.TransportKind;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("slow")
final class HttpObjectsTest {

    private final TestServer server = TestServer.start(TransportKind.AUTO);
    private final HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    @AfterEach
    void stop() {
        client.close();
        server.close();
    }

    private HttpRequest.Builder at(String path) {
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + server.port() + path));
    }

    private HttpResponse<byte[]> send(HttpRequest.Builder request) throws IOException, InterruptedException {
        return client.send(request.build(), BodyHandlers.ofByteArray());
    }

    private static byte[] content(int bytes) {
        byte[] content = new byte[bytes];
        new Random(bytes).nextBytes(content);
        return content;
    }

    @Test
    void givenAnObject_whenPutGotAndDeleted_thenItIsWhatWasPut() throws Exception {
        byte[] content = content(20_000_003);
        assertThat(send(at("/v1/objects/a%2Fb%20c").PUT(BodyPublishers.ofByteArray(content)))
                        .statusCode())
                .isEqualTo(204);
        HttpResponse<byte[]> got = send(at("/v1/objects/a/b%20c"));
        assertThat(got.statusCode()).isEqualTo(200);
        assertThat(got.body()).isEqualTo(content);
        HttpResponse<byte[]> head = send(at("/v1/objects/a/b%20c").HEAD());
        assertThat(head.headers().firstValueAsLong("content-length")).hasValue(content.length);
        assertThat(send(at("/v1/objects/a/b%20c").DELETE()).statusCode()).isEqualTo(204);
        assertThat(send(at("/v1/objects/a/b%20c").DELETE()).statusCode()).isEqualTo(404);
        assertThat(send(at("/v1/objects/a/b%20c")).statusCode()).isEqualTo(404);
    }

    @ParameterizedTest
    @CsvSource({
        "bytes=0-3, 206, 0123, bytes 0-3/10",
        "bytes=7-, 206, 789, bytes 7-9/10",
        "bytes=-2, 206, 89, bytes 8-9/10",
        "bytes=8-100, 206, 89, bytes 8-9/10",
        "bytes=-100, 206, 0123456789, bytes 0-9/10",
        "bytes=10-, 416, '', bytes */10",
        "bytes=-0, 416, '', bytes */10",
        "bytes=5-2, 200, 0123456789, ''",
        "'bytes=0-1,3-4', 200, 0123456789, ''",
        "lines=1-2, 200, 0123456789, ''"
    })
    void givenARange_whenAskedFor_thenItIsCutAsTheStandardSays(String range, int status, String body, String where)
            throws Exception {
        send(at("/v1/objects/k").PUT(BodyPublishers.ofString("0123456789")));
        HttpResponse<byte[]> reply = send(at("/v1/objects/k").header("Range", range));
        assertThat(reply.statusCode()).isEqualTo(status);
        assertThat(new String(reply.body(), US_ASCII)).isEqualTo(body);
        assertThat(reply.headers().firstValue("content-range").orElse("")).isEqualTo(where);
    }

    @Test
    void givenOperatorsPages_whenRead_thenTheyTellOfTheStore() throws Exception {
        send(at("/v1/objects/k").PUT(BodyPublishers.ofString("0123456789")));
        send(at("/v1/objects/k"));
        assertThat(new String(send(at("/health/live")).body(), US_ASCII)).isEqualTo("live\n");
        assertThat(new String(send(at("/health/ready")).body(), US_ASCII)).isEqualTo("ready\n");
        assertThat(new String(send(at("/v1/stats")).body(), US_ASCII))
                .contains("\"stored\":1", "\"hits\":1", "\"capacityBytes\":201326592");
        assertThat(new String(send(at("/metrics")).body(), US_ASCII))
                .contains(
                        "kv_reads_total{result=\"hit\",tenant=\"default\"} 1.0",
                        "cache_puts_total",
                        "kv_memory_capacity_bytes");
    }

    @Test
    void givenMistakes_whenMade_thenProblemsAreDescribed() throws Exception {
        HttpResponse<byte[]> unknown = send(at("/v1/nothing"));
        assertThat(unknown.statusCode()).isEqualTo(404);
        assertThat(unknown.headers().firstValue("content-type")).hasValue("application/problem+json");
        assertThat(new String(unknown.body(), US_ASCII)).contains("\"status\":404", "/v1/objects/{key}");
        HttpResponse<byte[]> post = send(at("/v1/objects/k").POST(BodyPublishers.ofString("x")));
        assertThat(post.statusCode()).isEqualTo(405);
        assertThat(post.headers().firstValue("allow")).hasValue("GET, HEAD, PUT, DELETE");
        assertThat(send(at("/v1/objects/")).statusCode()).isEqualTo(400);
        assertThat(send(at("/v1/objects/k").PUT(BodyPublishers.fromPublisher(BodyPublishers.ofString("no length"))))
                        .statusCode())
                .isEqualTo(411);
        assertThat(send(at("/v1/objects/k").header("Origin", "http://evil.example"))
                        .statusCode())
                .isEqualTo(403);
    }

    @Test
    void givenRawRequests_whenPipelinedOrWrong_thenEachIsAnsweredInOrder() throws Exception {
        String put = lines("PUT /v1/objects/k HTTP/1.1", "Host: localhost", "Content-Length: 2") + "hi";
        String get = lines("GET /v1/objects/k HTTP/1.1", "Host: localhost");
        String last = lines("GET /v1/objects/k HTTP/1.1", "Host: 127.0.0.1:80", "Connection: close");
        assertThat(raw(put + get + last))
                .matches("(?s)HTTP/1.1 204 .*HTTP/1.1 200 .*\r\n\r\nhiHTTP/1.1 200 .*\r\n\r\nhi");
        assertThat(raw(lines("GET /v1/objects/k HTTP/1.1", "Host: evil.example", "Connection: close")))
                .startsWith("HTTP/1.1 403 ")
                .contains("the Host is 'evil.example'; it takes an IP address, localhost, or a name");
        assertThat(raw(lines("GET /v1/objects/k HTTP/1.1", "Host: localhost", "Host: evil.example") + last))
                .startsWith("HTTP/1.1 400 ")
                .contains("there are several Hosts");
        assertThat(raw(lines("GET /v1/objects/k HTTP/1.1", "Host: localhost", "Sec-Fetch-Site: cross-site") + last))
                .startsWith("HTTP/1.1 403 ");
        assertThat(raw(lines("GET /v1/objects/k HTTP/1.1", "Host: localhost", "Origin: null") + last))
                .startsWith("HTTP/1.1 403 ");
        assertThat(raw(lines("GET /v1/objects/" + "a".repeat(20_000) + " HTTP/1.1")))
                .startsWith("HTTP/1.1 414 ")
                .contains("a request's line takes up to 16384 bytes");
        assertThat(raw(lines("GET /v1/objects/k HTTP/1.1", "Host: localhost", "X: " + "a".repeat(9_000))))
                .startsWith("HTTP/1.1 431 ")
                .contains("a request's headers take up to 8192 bytes");
        for (String wrong :
                List.of("Content-Length: two", "Content-Length: -2", "Content-Length: 1\r\nContent-Length: 2")) {
            assertThat(raw(lines("PUT /v1/objects/k HTTP/1.1", "Host: localhost", wrong)))
                    .as(wrong)
                    .startsWith("HTTP/1.1 400 ")
                    .contains("Content-Length takes one whole number of bytes, 0 and up");
        }
        assertThat(raw(lines("PUT /v1/objects/k HTTP/1.1", "Host: localhost", "no colon here")))
                .startsWith("HTTP/1.1 400 ");
        assertThat(raw(lines(
                        "PUT /v1/objects/k HTTP/1.1",
                        "Host: localhost",
                        "Content-Length: 999999999",
                        "Expect: 100-continue")))
                .startsWith("HTTP/1.1 413 ");
        assertThat(raw(lines(
                                "PUT /v1/objects/k HTTP/1.1",
                                "Host: localhost",
                                "Content-Length: 1",
                                "Expect: 100-continue",
                                "Connection: close")
                        + "x"))
                .startsWith("HTTP/1.1 100 ")
                .contains("HTTP/1.1 204 ");
    }

    @Test
    void givenABodyThatIsTooLarge_whenItsLengthIsSaid_thenTheRefusalDoesNotWaitForTheBody() throws Exception {
        assertThat(raw(lines("PUT /v1/objects/k HTTP/1.1", "Host: localhost", "Content-Length: 99999999999")))
                .startsWith("HTTP/1.1 413 ")
                .contains("connection: close", "an object of 99999999999 bytes");
        assertThat(raw(lines(
                        "PUT /v1/objects/k HTTP/1.1",
                        "Host: localhost",
                        "Content-Length: 99999999999",
                        "Expect: 100-continue")))
                .startsWith("HTTP/1.1 413 ");
        assertThat(raw(lines("POST /v1/hints HTTP/1.1", "Host: localhost", "Content-Length: 99999999999")))
                .matches("(?s)HTTP/1.1 4.*connection: close.*");
        assertThat(raw(lines("PUT /v1/objects/k HTTP/1.1", "Host: localhost", "Content-Length: 99999999999")
                        + "x".repeat(1 << 20)))
                .startsWith("HTTP/1.1 413 ");
    }

    @ParameterizedTest
    @ValueSource(strings = {"chunked", "Chunked"})
    void givenAPutInChunks_whenItBegins_thenTheRefusalDoesNotWaitForTheBody(String coding) throws Exception {
        String put = lines("PUT /v1/objects/k HTTP/1.1", "Host: localhost", "Transfer-Encoding: " + coding);
        assertThat(raw(put)).startsWith("HTTP/1.1 411 ").contains("connection: close", "a PUT takes a Content-Length");
        assertThat(raw(put + "3\r\nabc\r\n0\r\n\r\n")).startsWith("HTTP/1.1 411 ");
        assertThat(raw(lines("POST /v1/hints HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "Connection: close")
                        + "2\r\n{}\r\n0\r\n\r\n"))
                .as("a body that may come in chunks")
                .doesNotStartWith("HTTP/1.1 411 ");
    }

    @Test
    void givenATargetThatNamesTheServer_whenAskedFor_thenItIsServedAndIsTheHost() throws Exception {
        send(at("/v1/objects/k").PUT(BodyPublishers.ofString("hi")));
        assertThat(raw(lines("GET http://localhost:1/v1/objects/k HTTP/1.1", "Host: x", "Connection: close")))
                .startsWith("HTTP/1.1 200 ")
                .endsWith("\r\n\r\nhi");
        assertThat(raw(lines("GET HTTP://[::1] HTTP/1.1", "Host: localhost", "Connection: close")))
                .startsWith("HTTP/1.1 302 ");
        assertThat(raw(lines("GET http://127.0.0.1?x=/v1 HTTP/1.1", "Host: localhost", "Connection: close")))
                .startsWith("HTTP/1.1 302 ");
        assertThat(raw(lines("GET http://evil.example/v1/objects/k HTTP/1.1", "Host: localhost", "Connection: close")))
                .startsWith("HTTP/1.1 403 ")
                .contains("the Host is 'evil.example'");
        for (String target : List.of("http:///v1/objects/k", "http://me@localhost/v1/objects/k")) {
            assertThat(raw(lines("GET " + target + " HTTP/1.1", "Host: localhost")))
                    .startsWith("HTTP/1.1 400 ")
                    .contains("the target names no host, or a user");
        }
        String longKey = "a".repeat(9_000);
        assertThat(raw(lines(
                        "GET http://localhost/v1/objects/" + longKey + " HTTP/1.1",
                        "Host: localhost",
                        "Connection: close")))
                .startsWith("HTTP/1.1 400 ")
                .contains("a key takes 1 to 4096 bytes");
    }

    @Test
    void givenNoHostOrAFoldedHeader_whenAsked_thenTheRequestIsRefused() throws Exception {
        send(at("/v1/objects/k").PUT(BodyPublishers.ofString("hi")));
        assertThat(raw(lines("GET /v1/objects/k HTTP/1.1")))
                .startsWith("HTTP/1.1 400 ")
                .contains("there is no Host");
        assertThat(raw(lines("GET /v1/objects/k HTTP/1.0"))).startsWith("HTTP/1.1 200 ");
        for (String blank : List.of(" ", "\t", " \t ")) {
            String folded = lines("GET /v1/objects/k HTTP/1.1", "Host: localhost", "X-A: a", blank + "b");
            assertThat(raw(folded)).startsWith("HTTP/1.1 400 ").contains("a header goes on in a further line");
            assertThat(rawInPieces(folded)).startsWith("HTTP/1.1 400 ");
        }
        String body = " a\r\n b\r\n\tc"; // whose lines begin like those of a header that goes on
        String put = lines("PUT /v1/objects/k HTTP/1.1", "Host: localhost", "Content-Length: " + body.length()) + body;
        String chunks = lines("POST /v1/hints HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked")
                + "a;x= y\r\n\r\n  \r\n    \r\n0\r\n\r\n";
        String get = lines("GET /v1/objects/k HTTP/1.1", "Host: localhost", "Connection: close");
        assertThat(rawInPieces(put + chunks + "\r\n" + get))
                .matches("(?s)HTTP/1.1 204 .*the body .*HTTP/1.1 200 .*")
                .endsWith(body);
    }

    @Test
    void givenAClientOfHttp10_whenItKeepsTheConnection_thenItIsToldSo() throws Exception {
        send(at("/v1/objects/k").PUT(BodyPublishers.ofString("hi")));
        String get = lines("GET /v1/objects/k HTTP/1.0", "Connection: keep-alive");
        String last = lines("GET /v1/objects/k HTTP/1.0");
        assertThat(raw(get + last))
                .matches("(?s)HTTP/1.1 200 .*connection: keep-alive\r\n.*hi"
                        + "HTTP/1.1 200 .*connection: close\r\n.*hi");
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.setSoTimeout(60_000);
            socket.getOutputStream()
                    .write(lines("GET /v1/events?from=snapshot HTTP/1.0", "Connection: keep-alive")
                            .getBytes(US_ASCII));
            StringBuilder come = new StringBuilder();
            while (!come.toString().contains("event: live")) {
                come.append((char) socket.getInputStream().read());
            }
            assertThat(come.toString()) // its end is that of the connection
                    .contains("connection: close")
                    .doesNotContain("transfer-encoding", "keep-alive")
                    .contains("\r\n\r\nretry: 1000");
        }
    }

    private HttpResponse<byte[]> put(String value, String... conditions) throws Exception {
        HttpRequest.Builder put = at("/v1/objects/k").PUT(BodyPublishers.ofString(value));
        return send(conditions.length == 0 ? put : put.headers(conditions));
    }

    private String value() throws Exception {
        return new String(send(at("/v1/objects/k")).body(), US_ASCII);
    }

    private String etag() throws Exception {
        return send(at("/v1/objects/k")).headers().firstValue("etag").orElseThrow();
    }

    @Test
    void givenConditions_whenPut_thenTheyHoldOrNothingIsChanged() throws Exception {
        assertThat(put("one", "If-Match", "*").statusCode()).isEqualTo(412);
        assertThat(put("one", "If-Match", "\"00000000-3\"").statusCode()).isEqualTo(412);
        assertThat(send(at("/v1/objects/k")).statusCode()).isEqualTo(404);
        assertThat(put("one", "If-None-Match", "*").statusCode()).isEqualTo(204);
        assertThat(put("two", "If-None-Match", "*").statusCode()).isEqualTo(412);
        assertThat(value()).isEqualTo("one");
        String one = etag();
        assertThat(put("two", "If-Match", "\"a,b\", " + one).statusCode()).isEqualTo(204);
        assertThat(put("three", "If-Match", one).statusCode()).isEqualTo(412);
        assertThat(put("three", "If-Match", "W/" + etag()).statusCode())
                .as("not for writes")
                .isEqualTo(412);
        assertThat(put("three", "If-None-Match", etag()).statusCode()).isEqualTo(412);
        assertThat(value()).isEqualTo("two");
        assertThat(put("three", "If-None-Match", one).statusCode()).isEqualTo(204);
        assertThat(put("four", "If-Match", "*").statusCode()).isEqualTo(204);
        assertThat(value()).isEqualTo("four");
        assertThat(send(at("/v1/objects/k").DELETE().header("If-Match", one)).statusCode())
                .isEqualTo(412);
        assertThat(send(at("/v1/objects/k").DELETE().header("If-Match", etag())).statusCode())
                .isEqualTo(204);
        assertThat(send(at("/v1/objects/k").DELETE().header("If-Match", "*")).statusCode())
                .isEqualTo(404);
    }

    @Test
    void givenWhatIsNotTaken_whenAWriteAsksForIt_thenItIsRefused() throws Exception {
        put("one");
        String date = "Sun, 29 Nov 2026 10:00:00 GMT";
        assertThat(put("two", "If-Unmodified-Since", date).statusCode()).isEqualTo(501);
        assertThat(put("two", "Content-Range", "bytes 0-2/9").statusCode()).isEqualTo(400);
        for (String malformed : List.of("one", "\"a\" \"b\"", "*, \"a\"", "\"a")) {
            assertThat(put("two", "If-None-Match", malformed).statusCode())
                    .as(malformed)
                    .isEqualTo(400);
        }
        assertThat(send(at("/v1/objects/k").DELETE().header("If-Unmodified-Since", date))
                        .statusCode())
                .isEqualTo(501);
        assertThat(send(at("/v1/hints").POST(BodyPublishers.ofString("{}")).header("If-None-Match", "*"))
                        .statusCode())
                .isEqualTo(501);
        assertThat(value()).isEqualTo("one");
        assertThat(put("two", "If-Unmodified-Since", date, "If-Match", etag()).statusCode())
                .as("RFC 9110, 13.1.4")
                .isEqualTo(204);
    }

    @Test
    void givenAnEtag_whenRead_thenConditionsAndRangesGoByIt() throws Exception {
        put("0123456789");
        String etag = etag();
        assertThat(send(at("/v1/objects/k").HEAD()).headers().firstValue("etag"))
                .hasValue(etag);
        for (String known : List.of(etag, "W/" + etag, "\"x\" , " + etag, "*")) {
            HttpResponse<byte[]> same = send(at("/v1/objects/k").header("If-None-Match", known));
            assertThat(same.statusCode()).as(known).isEqualTo(304);
            assertThat(same.body()).isEmpty();
            assertThat(same.headers().firstValue("etag")).hasValue(etag);
        }
        assertThat(send(at("/v1/objects/k").HEAD().header("If-None-Match", etag))
                        .statusCode())
                .isEqualTo(304);
        assertThat(send(at("/v1/objects/k").header("If-None-Match", "\"x\"")).statusCode())
                .isEqualTo(200);
        assertThat(send(at("/v1/objects/k").header("If-Match", "\"x\"")).statusCode())
                .isEqualTo(412);
        assertThat(send(at("/v1/objects/k").header("If-Match", etag)).statusCode())
                .isEqualTo(200);
        HttpResponse<byte[]> part =
                send(at("/v1/objects/k").header("Range", "bytes=2-4").header("If-Range", etag));
        assertThat(part.statusCode()).isEqualTo(206);
        assertThat(part.headers().firstValue("etag")).hasValue(etag);
        assertThat(new String(part.body(), US_ASCII)).isEqualTo("234");
        for (String other : List.of("\"x\"", "W/" + etag, "Sun, 29 Nov 2026 10:00:00 GMT")) {
            assertThat(send(at("/v1/objects/k").header("Range", "bytes=2-4").header("If-Range", other))
                            .statusCode())
                    .as(other)
                    .isEqualTo(200);
        }
        put("9876543210");
        assertThat(etag()).isNotEqualTo(etag);
        put("0123456789");
        assertThat(etag()).as("the same value").isEqualTo(etag);
    }

    @Test
    @Timeout(120)
    void givenWritersThatCompareAndSet_whenTheyCountTogether_thenNoStepIsLost() throws Exception {
        int writers = 4;
        int steps = 25;
        put("0");
        List<CompletableFuture<Void>> all = new ArrayList<>();
        for (int i = 0; i < writers; i++) {
            all.add(CompletableFuture.runAsync(() -> count(steps), Thread::startVirtualThread));
        }
        CompletableFuture.allOf(all.toArray(CompletableFuture[]::new)).join();
        assertThat(value()).isEqualTo(Integer.toString(writers * steps));
    }

    private void count(int steps) {
        try {
            for (int done = 0; done < steps; ) {
                HttpResponse<byte[]> old = send(at("/v1/objects/k"));
                int next = 1 + Integer.parseInt(new String(old.body(), US_ASCII));
                String etag = old.headers().firstValue("etag").orElseThrow();
                int status = put(Integer.toString(next), "If-Match", etag).statusCode();
                assertThat(status).isIn(204, 412);
                done += status == 204 ? 1 : 0;
            }
        } catch (Exception failed) {
            throw new IllegalStateException(failed);
        }
    }

    private static String lines(String... lines) {
        return String.join("\r\n", lines) + "\r\n\r\n";
    }

    /// Cut at each byte.
    private String rawInPieces(String request) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.setSoTimeout(60_000);
            socket.setTcpNoDelay(true);
            for (byte each : request.getBytes(US_ASCII)) {
                socket.getOutputStream().write(each);
            }
            return new String(socket.getInputStream().readAllBytes(), US_ASCII);
        }
    }

    private String raw(String request) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.setSoTimeout(60_000);
            socket.getOutputStream().write(request.getBytes(US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), US_ASCII);
        }
    }
}
