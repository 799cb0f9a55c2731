package io.kvcache.engines.chat;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.langchain4j.data.message.AiMessage;
import dev.langchain4j.data.message.ChatMessage;
import dev.langchain4j.data.message.SystemMessage;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import dev.langchain4j.model.openai.OpenAiTokenUsage;
import io.kvcache.engines.jlama.CachedLlama;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// The server asked by langchain4j's client of OpenAI, by curl, and by hand where a client would not do
/// it wrong.
@Timeout(300)
final class ChatServerTest {

    private static final int BLOCK_TOKENS = 16;
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final JsonMapper JSON = JsonMapper.builder().build();

    /// Longer than a few blocks, a character a token.
    private static final String SYSTEM =
            "You answer in as few words as can be, and never ask anything back. ".repeat(3);

    @TempDir
    private static Path folder;

    private static CachedLlama llama;
    private static ChatServer server;
    private static String url;

    @BeforeAll
    static void start() throws IOException {
        llama = CachedLlama.open(folder, BLOCK_TOKENS);
        server = ChatServer.start(
                llama.generator(),
                ChatOptions.of(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), "random"));
        url = "http://127.0.0.1:" + server.address().getPort();
    }

    @AfterAll
    static void stop() {
        server.close();
        llama.close();
    }

    @BeforeEach
    void forget() throws InterruptedException {
        llama.forget();
    }

    private static OpenAiChatModel client() {
        return OpenAiChatModel.builder()
                .baseUrl(url + "/v1")
                .apiKey("none")
                .modelName("random")
                .temperature(0.0)
                .maxTokens(20)
                .timeout(PATIENCE)
                .maxRetries(0)
                .build();
    }

    private static int cached(ChatResponse response) {
        return ((OpenAiTokenUsage) response.tokenUsage()).inputTokensDetails().cachedTokens();
    }

    private static int whole(int tokens) {
        return tokens / BLOCK_TOKENS * BLOCK_TOKENS;
    }

    private static ChatResponse chat(OpenAiChatModel client, List<ChatMessage> messages) throws InterruptedException {
        ChatResponse response = client.chat(messages);
        llama.awaitStored();
        return response;
    }

    @Test
    void givenOpenAisClient_whenItAsksTwice_thenTheSecondAnswerIsTheSameAndMostOfItsPromptWasCached() throws Exception {
        List<ChatMessage> messages = List.of(SystemMessage.from(SYSTEM), UserMessage.from("Why?"));
        ChatResponse first = chat(client(), messages);
        ChatResponse second = chat(client(), messages);
        int prompt = first.tokenUsage().inputTokenCount();
        assertThat(prompt).isGreaterThan(SYSTEM.length());
        assertThat(cached(first)).isZero();
        assertThat(cached(second)).isEqualTo(whole(prompt - 1));
        assertThat(second.aiMessage().text())
                .isNotEmpty()
                .isEqualTo(first.aiMessage().text());
        assertThat(second.tokenUsage().outputTokenCount()).isEqualTo(20);
        assertThat(second.finishReason().name()).isEqualTo("LENGTH");
    }

    @Test
    void givenAChat_whenItGoesOn_thenWhatWasSaidBeforeWasCached() throws Exception {
        List<ChatMessage> messages = new ArrayList<>(List.of(SystemMessage.from(SYSTEM), UserMessage.from("Why?")));
        ChatResponse first = chat(client(), messages);
        messages.add(AiMessage.from(first.aiMessage().text()));
        messages.add(UserMessage.from("And why is that?"));
        ChatResponse second = chat(client(), messages);
        assertThat(cached(second))
                .isGreaterThanOrEqualTo(whole(first.tokenUsage().inputTokenCount()))
                .isLessThan(second.tokenUsage().inputTokenCount());
    }

    @Test
    void givenOpenAisClient_whenItStreams_thenThePiecesAreTheAnswerAndItKnowsWhatWasCached() throws Exception {
        List<ChatMessage> messages = List.of(SystemMessage.from(SYSTEM), UserMessage.from("Why?"));
        ChatResponse whole = chat(client(), messages);
        OpenAiStreamingChatModel streaming = OpenAiStreamingChatModel.builder()
                .baseUrl(url + "/v1")
                .apiKey("none")
                .modelName("random")
                .temperature(0.0)
                .maxTokens(20)
                .timeout(PATIENCE)
                .build();
        StringBuilder pieces = new StringBuilder();
        CompletableFuture<ChatResponse> done = new CompletableFuture<>();
        streaming.chat(messages, new StreamingChatResponseHandler() {
            @Override
            public void onPartialResponse(String text) {
                pieces.append(text);
            }

            @Override
            public void onCompleteResponse(ChatResponse response) {
                done.complete(response);
            }

            @Override
            public void onError(Throwable failure) {
                done.completeExceptionally(failure);
            }
        });
        ChatResponse streamed = done.get(60, TimeUnit.SECONDS);
        assertThat(pieces.toString()).isEqualTo(whole.aiMessage().text());
        assertThat(streamed.aiMessage().text()).isEqualTo(whole.aiMessage().text());
        assertThat(cached(streamed)).isEqualTo(whole(whole.tokenUsage().inputTokenCount() - 1));
    }

    @Test
    void givenCurl_whenItAsksAndStreams_thenUsageSaysWhatWasCached() throws Exception {
        String body = JSON.writeValueAsString(JSON.createObjectNode()
                .put("model", "random")
                .put("prompt", SYSTEM)
                .put("max_tokens", 5)
                .put("temperature", 0));
        JsonNode first = JSON.readTree(curl("/v1/completions", body));
        llama.awaitStored();
        assertThat(first.at("/object").stringValue()).isEqualTo("text_completion");
        int prompt = first.at("/usage/prompt_tokens").intValue();
        assertThat(prompt).isEqualTo(llama.model().encode(SYSTEM).length);
        assertThat(first.at("/usage/prompt_tokens_details/cached_tokens").intValue())
                .isZero();
        assertThat(first.at("/usage/total_tokens").intValue()).isEqualTo(prompt + 5);

        String streaming =
                body.substring(0, body.length() - 1) + ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}";
        List<String> events = curl("/v1/completions", streaming)
                .lines()
                .filter(line -> !line.isEmpty())
                .toList();
        assertThat(events).allMatch(line -> line.startsWith("data: ")).last().isEqualTo("data: [DONE]");
        StringBuilder text = new StringBuilder();
        int cached = -1;
        for (String event : events.subList(0, events.size() - 1)) {
            JsonNode chunk = JSON.readTree(event.substring("data: ".length()));
            text.append(chunk.at("/choices/0/text").asString(""));
            cached = chunk.at("/usage/prompt_tokens_details/cached_tokens").asInt(cached);
        }
        assertThat(text.toString()).isEqualTo(first.at("/choices/0/text").stringValue());
        assertThat(cached).isEqualTo(whole(prompt - 1));
    }

    private static String curl(String path, String body) throws Exception {
        Path data = Files.writeString(folder.resolve("body.json"), body);
        Process process;
        try {
            process = new ProcessBuilder(
                            "curl", "-sS", "-N", "-H", "Content-Type: application/json", "-d", "@" + data, url + path)
                    .redirectErrorStream(true)
                    .start();
        } catch (IOException absent) {
            Assumptions.abort("no curl here; apt-get install curl");
            throw absent;
        }
        try (BufferedReader said = process.inputReader(UTF_8)) {
            String all = said.readAllAsString();
            assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
            assertThat(process.exitValue()).as(all).isZero();
            return all;
        } finally {
            process.destroyForcibly();
        }
    }

    private static HttpResponse<String> ask(String method, String path, String body) throws Exception {
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(
                    HttpRequest.newBuilder(URI.create(url + path))
                            .timeout(PATIENCE)
                            .method(method, HttpRequest.BodyPublishers.ofString(body))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
        }
    }

    @Test
    void givenAStopText_whenTheAnswerHasIt_thenItEndsBefore() throws Exception {
        String asked = "{\"prompt\": \"abc\", \"temperature\": 0, \"max_tokens\": 20%s}";
        String all = JSON.readTree(
                        ask("POST", "/v1/completions", asked.formatted("")).body())
                .at("/choices/0/text")
                .stringValue();
        assertThat(all.length()).isGreaterThan(6);
        String stop = all.substring(4, 6);
        String quoted = JSON.writeValueAsString(stop);
        JsonNode answer = JSON.readTree(ask("POST", "/v1/completions", asked.formatted(", \"stop\": " + quoted))
                .body());
        assertThat(answer.at("/choices/0/text").stringValue()).isEqualTo(all.substring(0, all.indexOf(stop)));
        assertThat(answer.at("/choices/0/finish_reason").stringValue()).isEqualTo("stop");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '~',
            value = {
                "/v1/completions|{|400|no JSON",
                "/v1/completions|[]|400|no JSON object",
                "/v1/completions|{}|400|prompt",
                "/v1/completions|{\"prompt\":\"a\",\"max_tokens\":0}|400|1 and up",
                "/v1/completions|{\"prompt\":\"a\",\"temperature\":3}|400|0 to 2",
                "/v1/completions|{\"prompt\":\"a\",\"n\":2}|400|allowed: 1",
                "/v1/completions|{\"prompt\":\"a\",\"stop\":[\"a\",\"b\",\"c\",\"d\",\"e\"]}|400|up to four",
                "/v1/completions|{\"prompt\":\"a\",\"stream\":1}|400|true, false",
                "/v1/chat/completions|{\"messages\":[]}|400|messages",
                "/v1/chat/completions|{\"messages\":[{\"role\":\"king\",\"content\":\"a\"}]}|400|assistant",
                "/v1/chat/completions|{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]}|400|text",
                "/v1/nothing|{}|404|/v1/nothing"
            })
    void givenABadRequest_whenAsked_thenTheErrorNamesWhatIsWrong(String path, String body, int status, String part)
            throws Exception {
        HttpResponse<String> answer = ask("POST", path, body);
        assertThat(answer.statusCode()).isEqualTo(status);
        assertThat(JSON.readTree(answer.body()).at("/error/message").stringValue())
                .contains(part);
    }

    @Test
    void givenAPromptThatIsTooLong_whenAsked_thenTheErrorSaysHowLongItMayBe() throws Exception {
        String body = "{\"prompt\": \"" + "a".repeat(1100) + "\", \"stream\": true}";
        HttpResponse<String> answer = ask("POST", "/v1/completions", body);
        assertThat(answer.statusCode()).isEqualTo(400);
        assertThat(answer.body()).contains("1101 tokens", "up to 1021");
    }

    @Test
    void givenTheOtherPaths_whenAsked_thenTheyAnswer() throws Exception {
        assertThat(ask("GET", "/v1/models", "").body()).contains("\"random\"");
        assertThat(ask("GET", "/health", "").statusCode()).isEqualTo(200);
        assertThat(JSON.readTree(ask("GET", "/stats", "").body())
                        .at("/tokens/prompt")
                        .isIntegralNumber())
                .isTrue();
        assertThat(ask("GET", "/v1/completions", "").statusCode()).isEqualTo(405);
    }

    @Test
    void givenAClientThatLeavesAStream_whenTheNextOneAsks_thenItIsAnswered() throws Exception {
        String body = "{\"prompt\": \"abc\", \"temperature\": 0, \"max_tokens\": 900, \"stream\": true}";
        try (Socket socket =
                new Socket(InetAddress.getLoopbackAddress(), server.address().getPort())) {
            socket.getOutputStream()
                    .write(("POST /v1/completions HTTP/1.1\r\nHost: here\r\nContent-Length: " + body.length()
                                    + "\r\n\r\n" + body)
                            .getBytes(UTF_8));
            BufferedReader lines = new BufferedReader(new InputStreamReader(socket.getInputStream(), UTF_8));
            assertThat(lines.lines().anyMatch(line -> line.startsWith("data: {")))
                    .isTrue();
        }
        HttpResponse<String> next = ask("POST", "/v1/completions", "{\"prompt\": \"abc\", \"max_tokens\": 1}");
        assertThat(next.statusCode()).isEqualTo(200);
    }

    @Test
    void givenTwoRequestsAtOnceOnOneConnection_whenAnswered_thenTheirAnswersComeInOrder() throws Exception {
        String body = "{\"prompt\": \"abc\", \"temperature\": 0, \"max_tokens\": 2}";
        String post =
                "POST /v1/completions HTTP/1.1\r\nHost: here\r\nContent-Length: " + body.length() + "\r\n\r\n" + body;
        String get = "GET /v1/models HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
        try (Socket socket =
                new Socket(InetAddress.getLoopbackAddress(), server.address().getPort())) {
            socket.getOutputStream().write((post + get).getBytes(UTF_8));
            String all = new String(socket.getInputStream().readAllBytes(), UTF_8);
            assertThat(all.indexOf("text_completion")).isPositive().isLessThan(all.indexOf("\"object\":\"list\""));
        }
    }

    @Test
    void givenAnAddressThatIsTaken_whenAServerStarts_thenItSaysWhich() {
        assertThatThrownBy(() -> ChatServer.start(llama.generator(), ChatOptions.of(server.address(), "random")))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(String.valueOf(server.address().getPort()));
    }
}
