package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.NettyTransport.TransportKind;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// `POST /v1/hints` as a client sees it.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
final class HttpHintsTest {

    private final TestServer server = TestServer.start(TransportKind.AUTO);
    private final HttpTestClient httpTestClient = new HttpTestClient(server.port());

    @AfterAll
    void stop() {
        httpTestClient.close();
        server.close();
    }

    private String post(String body) throws Exception {
        return new String(httpTestClient.post("/v1/hints", body).body(), UTF_8);
    }

    @Test
    void givenValues_whenHintedAt_thenTheReplySaysOfHowManyItWasTaken() throws Exception {
        httpTestClient.put("/v1/objects/model%40chunk%2F1", new byte[5000]);
        httpTestClient.put("/v1/objects/b", new byte[5000]);
        String keys = "\"keys\":[\"model@chunk/1\",\"b\",\"absent\"]";
        assertThat(post("{\"hint\":\"pin\",\"milliseconds\":60000," + keys + "}"))
                .isEqualTo("{\"taken\":2}\n");
        assertThat(server.server().cache().hintStats().pins()).isEqualTo(2);
        assertThat(post("{\"hint\":\"unpin\"," + keys + "}")).isEqualTo("{\"taken\":2}\n");
        assertThat(server.server().cache().hintStats().pins()).isZero();
        assertThat(post("{\"hint\":\"expect\"," + keys + "}")).isEqualTo("{\"taken\":2}\n");
        assertThat(post("{\"hint\":\"return\",\"milliseconds\":1000," + keys + "}"))
                .isEqualTo("{\"taken\":2}\n");
        assertThat(post("{\"hint\":\"forget\"," + keys + "}")).isEqualTo("{\"taken\":2}\n");
        assertThat(post("{\"hint\":\"expire\",\"milliseconds\":1000," + keys + "}"))
                .isEqualTo("{\"taken\":3}\n");
        assertThat(post("{\"hint\":\"weigh\",\"weight\":0.5," + keys + "}"))
                .as("LRU makes no use of it")
                .isEqualTo("{\"taken\":0}\n");
        assertThat(post("{\"hint\":\"label\",\"kind\":\"chat\",\"turn\":\"first\"," + keys + "}"))
                .isEqualTo("{\"taken\":0}\n");
        String session = "{\"hint\":\"session\",\"kind\":\"agent\",\"session\":77,";
        assertThat(post(session + "\"turn\":1," + keys + "}"))
                .as("sessions are followed whatever the policy")
                .isEqualTo("{\"taken\":3}\n");
        assertThat(server.server().cache().hintStats().sessions()).isEqualTo(1);
        assertThat(post(session + "\"turn\":2,\"last\":true,\"keys\":[\"model@chunk/1\"]}"))
                .isEqualTo("{\"taken\":1}\n");
        assertThat(server.server().cache().hintStats().sessions()).isZero();
        assertThat(server.server().cache().hintStats().blocksLeft()).isEqualTo(1);
        assertThat(httpTestClient.get("/v1/objects/b").statusCode()).isEqualTo(200);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{}|hint is missing; it takes expect, return, forget",
                "{\"hint\":\"love\"}|hint is \\\"love\\\"; it takes expect, return, forget",
                "{\"hint\":\"pin\",\"keys\":[\"a\"]}|milliseconds is missing; it takes a whole number",
                "{\"hint\":\"pin\",\"milliseconds\":0,\"keys\":[\"a\"]}|milliseconds is 0; it takes 1 to 31536000000",
                "{\"hint\":\"pin\",\"milliseconds\":1.5,\"keys\":[\"a\"]}|milliseconds takes a whole number",
                "{\"hint\":\"expect\",\"milliseconds\":5,\"keys\":[\"a\"]}|there is no member milliseconds",
                "{\"hint\":\"expect\"}|keys is missing; it takes a list of texts",
                "{\"hint\":\"expect\",\"keys\":\"a\"}|keys takes a list of texts",
                "{\"hint\":\"expect\",\"keys\":[1]}|keys takes a list of texts",
                "{\"hint\":\"expect\",\"keys\":[]}|0 keys; a hint takes 1 to 8192",
                "{\"hint\":\"expect\",\"keys\":[\"\"]}|key of 0 bytes; it takes 1 to 4096",
                "{\"hint\":\"weigh\",\"weight\":2,\"keys\":[\"a\"]}|weight is 2.0; it takes 0 to 1",
                "{\"hint\":\"label\",\"kind\":\"chat\",\"keys\":[\"a\"]}|turn is missing; it takes first, later, last",
                "{\"hint\":\"label\",\"turn\":\"last\",\"keys\":[\"a\"]}|kind is missing; it takes chat, agent, batch, other",
                "{\"hint\":\"weigh\",\"keys\":[\"a\"]}|weight is missing; it takes a number from 0 to 1",
                "{\"hint\":\"session\",\"kind\":\"chat\",\"turn\":1,\"keys\":[\"a\"]}|session is missing; it takes a whole number",
                "{\"hint\":\"session\",\"kind\":\"chat\",\"session\":1,\"keys\":[\"a\"]}|turn is missing; it takes a whole number",
                "{\"hint\":\"session\",\"kind\":\"chat\",\"session\":1,\"turn\":\"last\",\"keys\":[\"a\"]}|turn takes a whole number",
                "{\"hint\":\"session\",\"kind\":\"chat\",\"session\":0,\"turn\":1,\"keys\":[\"a\"]}|session is 0; it takes 1 to",
                "{\"hint\":\"session\",\"kind\":\"chat\",\"session\":1,\"turn\":1,\"last\":1,\"keys\":[\"a\"]}|last takes true or false",
                "[1]|the body takes a JSON object"
            })
    void givenAHintThatCannotBe_whenPosted_thenTheProblemNamesWhatMay(String body, String detail) throws Exception {
        HttpResponse<byte[]> reply = httpTestClient.post("/v1/hints", body);
        assertThat(reply.statusCode()).isEqualTo(400);
        assertThat(new String(reply.body(), UTF_8)).contains(detail);
    }

    @Test
    void givenAnotherMethod_whenAsked_thenTheReplyNamesTheOneThereIs() throws Exception {
        HttpResponse<byte[]> reply =
                httpTestClient.send(httpTestClient.request("/v1/hints").PUT(BodyPublishers.ofString("{}")));
        assertThat(reply.statusCode()).isEqualTo(405);
        assertThat(reply.headers().firstValue("Allow")).hasValue("POST");
    }
}
