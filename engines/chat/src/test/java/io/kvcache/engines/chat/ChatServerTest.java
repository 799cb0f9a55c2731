package io.kvcache.engines.chat;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.engines.generator.CachedModel;
import io.kvcache.engines.generator.GenerationRequest;
import io.kvcache.engines.generator.PrefixCachedGenerator.TokenListener;
import io.kvcache.engines.jlama.CachedLlama;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;

/// The server over Jlama, asked by hand where a client would not do it wrong.
@Timeout(300)
@Tag("slow")
final class ChatServerTest extends ChatServerContract {

    @Override
    CachedModel<?> open(Path folder) throws IOException {
        return CachedLlama.open(folder, BLOCK_TOKENS);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '~',
            value = {
                "/v1/completions|{|400||invalid_json|no JSON",
                "/v1/completions|[]|400||invalid_json|no JSON object",
                "/v1/completions|{}|400|prompt|invalid_value|prompt",
                "/v1/completions|{\"prompt\":[]}|400|prompt|invalid_value|array of tokens",
                "/v1/completions|{\"prompt\":[\"a\",\"b\"]}|400|prompt|invalid_value|prompt has 2 prompts",
                "/v1/completions|{\"prompt\":[1,2.5]}|400|prompt|invalid_value|element 1 of prompt is 2.5",
                "/v1/completions|{\"prompt\":[1,512]}|400|prompt|invalid_value|tokens of this model are 0 to 511",
                "/v1/completions|{\"prompt\":[1,-1]}|400|prompt|invalid_value|element 1 of prompt is -1",
                "/v1/completions|{\"prompt\":\"a\",\"max_tokens\":0}|400|max_tokens|invalid_value|1 and up",
                "/v1/completions|{\"prompt\":\"a\",\"temperature\":3}|400|temperature|invalid_value|0 to 2",
                "/v1/completions|{\"prompt\":\"a\",\"seed\":1e30}|400|seed|invalid_value|whole number",
                "/v1/completions|{\"prompt\":\"a\",\"stop\":[\"a\",\"b\",\"c\",\"d\",\"e\"]}|400|stop|invalid_value|up to four",
                "/v1/completions|{\"prompt\":\"a\",\"stream\":1}|400|stream|invalid_value|true, false",
                "/v1/completions|{\"prompt\":\"a\",\"model\":7}|400|model|invalid_value|model is 7",
                "/v1/completions|{\"prompt\":\"a\",\"model\":\"gpt-4\"}|404|model|model_not_found|has 'random'",
                "/v1/chat/completions|{\"messages\":[]}|400|messages|invalid_value|messages",
                "/v1/chat/completions|{\"messages\":[{\"role\":\"king\",\"content\":\"a\"}]}|400|messages.role|invalid_value|assistant",
                "/v1/chat/completions|{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]}|400|messages.content"
                        + "|invalid_value|text",
                "/v1/nothing|{}|404||unknown_url|/v1/nothing"
            })
    void givenABadRequest_whenAsked_thenTheErrorNamesWhatIsWrong(
            String path, String body, int status, String parameter, String code, String part) throws Exception {
        HttpResponse<String> answer = ask("POST", path, body);
        assertThat(answer.statusCode()).isEqualTo(status);
        JsonNode error = JSON.readTree(answer.body()).at("/error");
        assertThat(error.at("/message").stringValue()).contains(part).doesNotContain("REDACTED");
        assertThat(error.at("/type").stringValue()).isEqualTo("invalid_request_error");
        assertThat(error.at("/param").stringValue(null)).isEqualTo(parameter);
        assertThat(error.at("/code").stringValue()).isEqualTo(code);
    }

    /// All of them would change the answer, and OpenAI's own server takes them.
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '~',
            value = {
                "tools|[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]",
                "tool_choice|\"required\"",
                "functions|[{\"name\":\"f\"}]",
                "function_call|{\"name\":\"f\"}",
                "top_p|0.9",
                "n|2",
                "best_of|3",
                "echo|true",
                "suffix|\"end\"",
                "logprobs|true",
                "logprobs|0",
                "top_logprobs|2",
                "logit_bias|{\"5\":-100}",
                "presence_penalty|0.5",
                "frequency_penalty|-1",
                "response_format|{\"type\":\"json_object\"}",
                "modalities|[\"text\",\"audio\"]",
                "audio|{\"voice\":\"a\"}",
                "reasoning_effort|\"high\"",
                "verbosity|\"low\"",
                "web_search_options|{}",
                "top_k|40",
                "min_p|0.1",
                "repetition_penalty|1.1",
                "messages.tool_calls|[{\"id\":\"a\"}]",
                "messages.function_call|{\"name\":\"f\"}"
            })
    void givenAParameterThatItDoesNotDo_whenAsked_thenItIsRefusedByName(String name, String value) throws Exception {
        HttpResponse<String> answer = ask("POST", "/v1/chat/completions", chatWith(name, value));
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(400);
        JsonNode error = JSON.readTree(answer.body()).at("/error");
        assertThat(error.at("/message").stringValue()).startsWith(name + " is ").contains("leave it out");
        assertThat(error.at("/param").stringValue()).isEqualTo(name);
        assertThat(error.at("/code").stringValue()).isEqualTo("unsupported_parameter");
    }

    private static String chatWith(String name, String value) {
        String inMessage =
                name.startsWith("messages.") ? ",\"%s\":%s".formatted(name.substring("messages.".length()), value) : "";
        return "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"%s}],\"max_tokens\":1%s}"
                .formatted(inMessage, inMessage.isEmpty() ? ",\"%s\":%s".formatted(name, value) : "");
    }

    @Test
    void givenAParameterThatDoesNotExist_whenAsked_thenItIsRefusedByName() throws Exception {
        HttpResponse<String> answer = ask("POST", "/v1/chat/completions", chatWith("max_token", "5"));
        assertThat(answer.statusCode()).isEqualTo(400);
        JsonNode error = JSON.readTree(answer.body()).at("/error");
        assertThat(error.at("/param").stringValue()).isEqualTo("max_token");
        assertThat(error.at("/code").stringValue()).isEqualTo("unknown_parameter");
        assertThat(error.at("/message").stringValue()).contains("max_tokens");
    }

    /// As clients send them that fill in every default.
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '~',
            value = {
                "tools|[]",
                "tool_choice|\"none\"",
                "top_p|1",
                "n|1",
                "logprobs|false",
                "logit_bias|{}",
                "presence_penalty|0",
                "frequency_penalty|0.0",
                "response_format|{\"type\":\"text\"}",
                "top_k|-1",
                "modalities|[\"text\"]",
                "stop|null",
                "seed|7",
                "user|\"me\"",
                "metadata|{\"a\":\"b\"}",
                "model|\"random\"",
                "service_tier|\"auto\"",
                "prompt_cache_key|\"a\"",
                "tools|null",
                "messages.tool_calls|[]",
                "messages.tool_calls|null",
                "messages.refusal|null"
            })
    void givenAParameterThatAsksForNothing_whenAsked_thenItIsAnswered(String name, String value) throws Exception {
        HttpResponse<String> answer = ask("POST", "/v1/chat/completions", chatWith(name, value));
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
    }

    @Test
    void givenTopPWhereTheLikeliestTokenIsTaken_whenAsked_thenItIsAnsweredAsItChangesNothing() throws Exception {
        String body = "{\"prompt\": \"abc\", \"temperature\": 0, \"max_tokens\": 5, \"seed\": %d%s}";
        HttpResponse<String> plain = ask("POST", "/v1/completions", body.formatted(1, ""));
        HttpResponse<String> nucleus = ask("POST", "/v1/completions", body.formatted(2, ", \"top_p\": 0.5"));
        assertThat(nucleus.statusCode()).as(nucleus.body()).isEqualTo(200);
        assertThat(JSON.readTree(nucleus.body()).at("/choices/0/text"))
                .isEqualTo(JSON.readTree(plain.body()).at("/choices/0/text"));
    }

    /// Nothing waits for the store here: the next request does, for the blocks that it shares.
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenAnAnswer_whenTheNextRequestGoesOnAtOnce_thenAllFullBlocksOfPromptAndAnswerAreCached(boolean stream)
            throws Exception {
        String prompt = SYSTEM;
        for (int turn = 0; turn < 5; turn++) {
            String body = JSON.writeValueAsString(JSON.createObjectNode()
                    .put("prompt", prompt)
                    .put("max_tokens", 30)
                    .put("temperature", 0)
                    .put("stream", stream));
            HttpResponse<String> answer = ask("POST", "/v1/completions", body);
            String said = stream ? streamed(answer.body()) : text(answer);
            int[] next = llama().model().encode(prompt + said + "?");
            JsonNode followUp = JSON.readTree(ask(
                            "POST",
                            "/v1/completions",
                            JSON.writeValueAsString(JSON.createObjectNode()
                                    .put("prompt", prompt + said + "?")
                                    .put("max_tokens", 1)
                                    .put("temperature", 0)))
                    .body());
            assertThat(followUp.at("/usage/prompt_tokens_details/cached_tokens").intValue())
                    .isEqualTo(whole(shared(computed(prompt, 30), next)));
            prompt = prompt + said + "?";
        }
    }

    /// The tokens of a prompt and its answer without the last one, whose keys and values are never computed.
    private int[] computed(String prompt, int maxTokens) {
        int[] tokens = llama().model().encode(prompt);
        int[] said = llama().generator()
                .generate(
                        new GenerationRequest(
                                tokens, maxTokens, 0, 0, llama().model().stopTokens(), false),
                        TokenListener.NONE)
                .tokens();
        int[] all = Arrays.copyOf(tokens, tokens.length + said.length - 1);
        System.arraycopy(said, 0, all, tokens.length, said.length - 1);
        return all;
    }

    /// Tokens that both begin with; a text that goes on need not be cut into tokens as it was generated.
    private static int shared(int[] one, int[] two) {
        int mismatch = Arrays.mismatch(one, two);
        return mismatch < 0 ? one.length : mismatch;
    }

    @Test
    void givenRequests_whenMetricsAreRead_thenTheyCountRequestsTokensAndTimes() throws Exception {
        String body = "{\"prompt\": \"" + "abc ".repeat(20) + "\", \"temperature\": 0, \"max_tokens\": 5%s}";
        Map<String, Double> before = metrics();
        ask("POST", "/v1/completions", body.formatted(""));
        ask("POST", "/v1/completions", body.formatted(", \"stream\": true"));
        ask("POST", "/v1/completions", body.formatted(", \"top_p\": 0.5, \"n\": 2"));
        Map<String, Double> after = metrics();
        int prompt = llama().model().encode("abc ".repeat(20)).length;
        assertThat(grown(before, after, "kv_chat_requests_total{outcome=\"ok\",path=\"/v1/completions\"}"))
                .isEqualTo(2);
        assertThat(grown(before, after, "kv_chat_requests_total{outcome=\"refused\",path=\"/v1/completions\"}"))
                .isEqualTo(1);
        assertThat(grown(before, after, "kv_engine_tokens_total{engine=\"random\",kind=\"prompt\"}"))
                .isEqualTo(2 * prompt);
        assertThat(grown(before, after, "kv_engine_tokens_total{engine=\"random\",kind=\"saved\"}"))
                .isEqualTo(whole(prompt - 1));
        assertThat(grown(before, after, "kv_engine_tokens_total{engine=\"random\",kind=\"generated\"}"))
                .isEqualTo(10);
        assertThat(grown(before, after, "kv_chat_latency_seconds_count{path=\"/v1/completions\"}"))
                .isEqualTo(2);
        assertThat(grown(before, after, "kv_chat_first_token_seconds_count{path=\"/v1/completions\"}"))
                .isEqualTo(2);
        assertThat(after).containsKeys("kv_chat_waiting", "test_store_meter");
        String text = ask("GET", "/metrics", "").body();
        for (String name : text.lines()
                .filter(line -> line.startsWith("# TYPE "))
                .map(line -> line.substring("# TYPE ".length(), line.lastIndexOf(' ')))
                .toList()) {
            assertThat(text).containsPattern("# HELP " + name + " \\S");
        }
    }

    private static double grown(Map<String, Double> before, Map<String, Double> after, String series) {
        assertThat(after).containsKey(series);
        return after.getOrDefault(series, 0.0) - before.getOrDefault(series, 0.0);
    }

    private Map<String, Double> metrics() throws Exception {
        HttpResponse<String> answer = ask("GET", "/metrics", "");
        assertThat(answer.statusCode()).isEqualTo(200);
        assertThat(answer.headers().firstValue("content-type").orElse("")).startsWith("text/plain; version=0.0.4");
        return answer.body()
                .lines()
                .filter(line -> !line.startsWith("#"))
                .collect(Collectors.toMap(
                        line -> line.substring(0, line.lastIndexOf(' ')),
                        line -> Double.valueOf(line.substring(line.lastIndexOf(' ') + 1))));
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
                new Socket(InetAddress.getLoopbackAddress(), server().address().getPort())) {
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
                new Socket(InetAddress.getLoopbackAddress(), server().address().getPort())) {
            socket.getOutputStream().write((post + get).getBytes(UTF_8));
            String all = new String(socket.getInputStream().readAllBytes(), UTF_8);
            assertThat(all.indexOf("text_completion")).isPositive().isLessThan(all.indexOf("\"object\":\"list\""));
        }
    }

    @Test
    void givenAnAddressThatIsTaken_whenAServerStarts_thenItSaysWhich() {
        assertThatThrownBy(() ->
                        ChatServer.start(llama().generator(), ChatOptions.of(server().address(), "random"), List.of()))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(String.valueOf(server().address().getPort()));
    }
}
