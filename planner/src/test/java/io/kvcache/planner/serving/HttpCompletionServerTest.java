package io.kvcache.planner.serving;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpServer;
import io.kvcache.planner.serving.CompletionServer.Completion;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

final class HttpCompletionServerTest {

    private static final String ANSWER = """
            data: {"choices":[{"text":"a"}],"usage":null}

            data: {"choices":[{"text":"b"}]}

            data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":2}}}

            data: [DONE]

            """;

    private final AtomicReference<String> asked = new AtomicReference<>("");
    private HttpServer http;
    private String models = "{\"data\":[{\"id\":\"tiny\"}]}";
    private String answer = ANSWER;
    private int status = 200;

    @BeforeEach
    void start() throws IOException {
        http = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        http.createContext("/v1/models", exchange -> {
            exchange.sendResponseHeaders(200, models.length());
            exchange.getResponseBody().write(models.getBytes(UTF_8));
            exchange.close();
        });
        http.createContext("/v1/completions", exchange -> {
            asked.set(new String(exchange.getRequestBody().readAllBytes(), UTF_8));
            exchange.sendResponseHeaders(status, 0);
            exchange.getResponseBody().write(answer.getBytes(UTF_8));
            exchange.close();
        });
        http.start();
    }

    @AfterEach
    void stop() {
        http.stop(0);
    }

    private String url() {
        return "http://127.0.0.1:" + http.getAddress().getPort();
    }

    private Completion complete() throws Exception {
        try (HttpCompletionServer server = HttpCompletionServer.connect(url() + "/v1/")) {
            assertThat(server.model()).isEqualTo("tiny");
            return server.complete(new int[] {4, 5, 6}, 2);
        }
    }

    @Test
    void givenAStream_whenRead_thenItsUsageAndTimes() throws Exception {
        Completion completion = complete();
        assertThat(completion.promptTokens()).isEqualTo(3);
        assertThat(completion.cachedTokens()).isEqualTo(2);
        assertThat(completion.outputTokens()).isEqualTo(2);
        assertThat(completion.firstTokenSeconds()).isPositive().isLessThanOrEqualTo(completion.totalSeconds());
        JsonNode body = JsonMapper.shared().readTree(asked.get());
        assertThat(body.at("/prompt").toString()).isEqualTo("[4,5,6]");
        assertThat(body.at("/max_tokens").intValue()).isEqualTo(2);
        assertThat(body.at("/model").stringValue()).isEqualTo("tiny");
        assertThat(body.at("/stream_options/include_usage").booleanValue()).isTrue();
    }

    @Test
    void givenAnErrorOfTheServer_whenAsked_thenItIsTheMessage() {
        status = 400;
        answer = "{\"error\":{\"message\":\"the prompt is too long\"}}";
        assertThatThrownBy(this::complete)
                .isInstanceOf(IOException.class)
                .hasMessageContaining("status 400")
                .hasMessageContaining("the prompt is too long");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "data: [DONE]|stream_options",
                "data: {\"choices\":[]}|stream_options",
                "data: {\"error\":{\"message\":\"broken\"}}|broken",
                "data: <html>|other than JSON",
                "<html>|stream_options"
            })
    void givenAnotherAnswer_whenRead_thenTheErrorSaysWhatIsMissing(String sent, String message) {
        answer = sent + "\n\n";
        assertThatThrownBy(this::complete).isInstanceOf(IOException.class).hasMessageContaining(message);
    }

    @Test
    void givenNoModel_whenConnected_thenTheErrorSaysSo() {
        models = "{}";
        assertThatThrownBy(() -> HttpCompletionServer.connect(url()))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("names no model at /v1/models");
    }

    @Test
    void givenNoServer_whenConnected_thenTheErrorNamesItsAddress() {
        String url = url();
        http.stop(0);
        assertThatThrownBy(() -> HttpCompletionServer.connect(url))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(url + " does not answer");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "localhost:8000", "ftp://localhost", "http://", "http://h/v2", "http://a b"})
    void givenAnotherText_whenParsed_thenTheErrorSaysWhatMayBe(String text) {
        assertThatThrownBy(() -> HttpCompletionServer.parse(text))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("URL is '" + text + "', must be: http://HOST:PORT");
    }
}
