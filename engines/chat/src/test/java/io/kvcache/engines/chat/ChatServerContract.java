package io.kvcache.engines.chat;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.langchain4j.data.message.AiMessage;
import dev.langchain4j.data.message.ChatMessage;
import dev.langchain4j.data.message.SystemMessage;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import dev.langchain4j.model.openai.OpenAiTokenUsage;
import io.kvcache.engines.generator.CachedModel;
import io.micrometer.core.instrument.Gauge;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// What the server does over every engine: asked by langchain4j's client of OpenAI, by curl, and by hand.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class ChatServerContract {

    static final int BLOCK_TOKENS = 16;
    static final JsonMapper JSON = JsonMapper.builder().build();

    /// Longer than a few blocks, a character a token.
    static final String SYSTEM = "You answer in as few words as can be, and never ask anything back. ".repeat(3);

    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private @Nullable Path folder;
    private @Nullable CachedModel<?> opened;
    private @Nullable ChatServer started;

    /// Makes the model and an empty store, with blocks of [#BLOCK_TOKENS].
    abstract CachedModel<?> open(Path folder) throws IOException;

    final CachedModel<?> llama() {
        return Objects.requireNonNull(opened);
    }

    final ChatServer server() {
        return Objects.requireNonNull(started);
    }

    final String url() {
        return "http://127.0.0.1:" + server().address().getPort();
    }

    @BeforeAll
    final void start(@TempDir Path shared) throws IOException {
        folder = shared;
        opened = open(shared);
        started = ChatServer.start(
                llama().generator(),
                ChatOptions.of(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), "random"),
                List.of(registry -> Gauge.builder("test.store.meter", () -> 1)
                        .description("Stands for the store's meters.")
                        .register(registry)));
    }

    @AfterAll
    final void stop() {
        if (started != null) {
            started.close();
        }
        if (opened != null) {
            opened.close();
        }
    }

    @BeforeEach
    final void forget() throws InterruptedException {
        llama().dropAll();
    }

    private OpenAiChatModel client() {
        return OpenAiChatModel.builder()
                .baseUrl(url() + "/v1")
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

    static int whole(int tokens) {
        return tokens / BLOCK_TOKENS * BLOCK_TOKENS;
    }

    private ChatResponse chat(OpenAiChatModel client, List<ChatMessage> messages) throws InterruptedException {
        ChatResponse response = client.chat(messages);
        llama().awaitStored();
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
                .baseUrl(url() + "/v1")
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
        llama().awaitStored();
        assertThat(first.at("/object").stringValue()).isEqualTo("text_completion");
        int prompt = first.at("/usage/prompt_tokens").intValue();
        assertThat(prompt).isEqualTo(llama().model().encode(SYSTEM).length);
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

    private String curl(String path, String body) throws Exception {
        Path data = Files.writeString(Objects.requireNonNull(folder).resolve("body.json"), body);
        Process process;
        try {
            process = new ProcessBuilder(
                            "curl", "-sS", "-N", "-H", "Content-Type: application/json", "-d", "@" + data, url() + path)
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

    final HttpResponse<String> ask(String method, String path, String body) throws Exception {
        return ask(url(), method, path, body);
    }

    static HttpResponse<String> ask(String server, String method, String path, String body) throws Exception {
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(
                    HttpRequest.newBuilder(URI.create(server + path))
                            .timeout(PATIENCE)
                            .method(method, HttpRequest.BodyPublishers.ofString(body))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
        }
    }

    @Test
    void givenAPromptOfTokens_whenAsked_thenTheAnswerIsThatOfItsText() throws Exception {
        String body = "{\"prompt\": %s, \"temperature\": 0, \"max_tokens\": 5}";
        int[] tokens = llama().model().encode("tokens or text");
        JsonNode ofText = JSON.readTree(ask("POST", "/v1/completions", body.formatted("\"tokens or text\""))
                .body());
        llama().awaitStored();
        for (Object prompt : new Object[] {tokens, new int[][] {tokens}}) {
            JsonNode ofTokens =
                    JSON.readTree(ask("POST", "/v1/completions", body.formatted(JSON.writeValueAsString(prompt)))
                            .body());
            assertThat(ofTokens.at("/choices/0/text")).isEqualTo(ofText.at("/choices/0/text"));
            assertThat(ofTokens.at("/usage/prompt_tokens").intValue()).isEqualTo(tokens.length);
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

    @Test
    void givenASeed_whenAskedTwiceAtATemperature_thenTheAnswerIsTheSame() throws Exception {
        String body = "{\"prompt\": \"abc\", \"temperature\": 1, \"max_tokens\": 20, \"seed\": %d}";
        String first = text(ask("POST", "/v1/completions", body.formatted(5)));
        assertThat(text(ask("POST", "/v1/completions", body.formatted(5)))).isEqualTo(first);
        assertThat(text(ask("POST", "/v1/completions", body.formatted(6)))).isNotEqualTo(first);
    }

    static String text(HttpResponse<String> answer) {
        return JSON.readTree(answer.body()).at("/choices/0/text").stringValue();
    }

    static String streamed(String events) {
        StringBuilder text = new StringBuilder();
        for (String line :
                events.lines().filter(each -> each.startsWith("data: {")).toList()) {
            text.append(JSON.readTree(line.substring("data: ".length()))
                    .at("/choices/0/text")
                    .asString(""));
        }
        return text.toString();
    }

    @Test
    void givenAPromptThatIsTooLong_whenAsked_thenTheErrorSaysHowLongItMayBe() throws Exception {
        String body = "{\"prompt\": \"" + "a".repeat(1100) + "\", \"stream\": true}";
        HttpResponse<String> answer = ask("POST", "/v1/completions", body);
        assertThat(answer.statusCode()).isEqualTo(400);
        assertThat(answer.body())
                .contains(
                        "1101 tokens", "up to " + (llama().model().contextLength() - 1), "\"context_length_exceeded\"");
    }

    /// Of the tokens of a random model, every second one is a byte.
    @Test
    void givenCharactersOverSeveralTokens_whenStreamed_thenThePiecesAreTheWholeAnswer() throws Exception {
        String body = "{\"prompt\": \"é€😀\", \"temperature\": 2, \"max_tokens\": 300, \"seed\": %d, \"stream\": %b}";
        StringBuilder all = new StringBuilder();
        for (int seed = 1; seed <= 5; seed++) {
            HttpResponse<String> whole = ask("POST", "/v1/completions", body.formatted(seed, false));
            assertThat(JSON.readTree(whole.body()).at("/usage/prompt_tokens").intValue())
                    .isEqualTo(1 + "é€😀".getBytes(UTF_8).length);
            assertThat(streamed(ask("POST", "/v1/completions", body.formatted(seed, true))
                            .body()))
                    .isEqualTo(text(whole));
            all.append(text(whole));
        }
        assertThat(all.chars().filter(each -> each >= 0x80 && each != 0xfffd)).isNotEmpty();
    }
}
