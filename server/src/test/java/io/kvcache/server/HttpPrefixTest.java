package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.NettyTransport.TransportKind;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// `POST /v1/prefix` as a client sees it.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
final class HttpPrefixTest {

    private final TestServer server = TestServer.start(TransportKind.AUTO);
    private final HttpTestClient httpTestClient = new HttpTestClient(server.port());

    @AfterAll
    void stop() {
        httpTestClient.close();
        server.close();
    }

    private HttpResponse<byte[]> post(String body) throws Exception {
        return httpTestClient.post("/v1/prefix", body);
    }

    private long pins() {
        return server.server().cache().hintStats().pins();
    }

    @Test
    void givenValues_whenAPrefixIsCounted_thenLeadingKeysCountAndArePinned() throws Exception {
        httpTestClient.put("/v1/objects/model%40chunk%2F1", new byte[5000]);
        httpTestClient.put("/v1/objects/%C3%BC", new byte[5000]);
        httpTestClient.put("/v1/objects/c", new byte[5000]);
        String keys = "\"keys\":[\"model@chunk/1\",\"ü\",\"absent\",\"c\"]";
        assertThat(post("{" + keys + "}").body()).asString(UTF_8).isEqualTo("{\"present\":2}\n");
        assertThat(post("{" + keys + ",\"milliseconds\":0}").body())
                .asString(UTF_8)
                .isEqualTo("{\"present\":2}\n");
        assertThat(pins()).isZero();
        assertThat(post("{\"milliseconds\":3600000," + keys + "}").body())
                .asString(UTF_8)
                .isEqualTo("{\"present\":2}\n");
        assertThat(pins()).isEqualTo(2);
        assertThat(post("{\"milliseconds\":1000,\"keys\":[\"absent\"]}").body())
                .asString(UTF_8)
                .isEqualTo("{\"present\":0}\n");
    }

    @Test
    void givenMoreKeysThanOneTurnTakes_whenCountedAndHinted_thenAllAreAnswered() throws Exception {
        for (int i = 0; i < 1_100; i++) {
            httpTestClient.put("/v1/objects/many" + i, new byte[10]);
        }
        String keys =
                IntStream.range(0, 1_101).mapToObj(i -> "\"many" + i + "\"").collect(Collectors.joining(","));
        assertThat(post("{\"keys\":[" + keys + "]}").body()).asString(UTF_8).isEqualTo("{\"present\":1100}\n");
        assertThat(httpTestClient
                        .post("/v1/hints", "{\"hint\":\"forget\",\"keys\":[" + keys + "]}")
                        .body())
                .asString(UTF_8)
                .isEqualTo("{\"taken\":1100}\n");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{}|keys is missing; it takes a list of texts",
                "{\"keys\":\"a\"}|keys takes a list of texts",
                "{\"keys\":[1]}|keys takes a list of texts",
                "{\"keys\":[]}|0 keys; a prefix takes 1 to 8192",
                "{\"keys\":[\"\"]}|key of 0 bytes; it takes 1 to 4096",
                "{\"milliseconds\":-1,\"keys\":[\"a\"]}|milliseconds is -1; it takes 0 to 3600000",
                "{\"milliseconds\":3600001,\"keys\":[\"a\"]}|milliseconds is 3600001; it takes 0 to 3600000",
                "{\"milliseconds\":1.5,\"keys\":[\"a\"]}|milliseconds takes a whole number",
                "{\"milliseconds\":\"1\",\"keys\":[\"a\"]}|milliseconds takes a whole number",
                "{\"milliseconds\":null,\"keys\":[\"a\"]}|milliseconds takes a whole number",
                "{\"ttl\":1,\"keys\":[\"a\"]}|there is no member ttl; there are keys, milliseconds",
                "[1]|the body takes a JSON object"
            })
    void givenAPrefixThatCannotBe_whenPosted_thenTheProblemNamesWhatMay(String body, String detail) throws Exception {
        HttpResponse<byte[]> reply = post(body);
        assertThat(reply.statusCode()).isEqualTo(400);
        assertThat(new String(reply.body(), UTF_8)).contains(detail);
    }

    @Test
    void givenTooManyKeys_whenPosted_thenTheProblemNamesHowManyMayBe() throws Exception {
        String keys = IntStream.range(0, 8193).mapToObj(i -> "\"n" + i + "\"").collect(Collectors.joining(","));
        HttpResponse<byte[]> reply = post("{\"keys\":[" + keys + "]}");
        assertThat(reply.statusCode()).isEqualTo(400);
        assertThat(new String(reply.body(), UTF_8)).contains("8193 keys; a prefix takes 1 to 8192");
    }

    @Test
    void givenAnotherMethod_whenAsked_thenTheReplyNamesTheOneThereIs() throws Exception {
        HttpResponse<byte[]> reply =
                httpTestClient.send(httpTestClient.request("/v1/prefix").PUT(BodyPublishers.ofString("{}")));
        assertThat(reply.statusCode()).isEqualTo(405);
        assertThat(reply.headers().firstValue("Allow")).hasValue("POST");
    }
}
