package io.kvcache.engines.chat;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.engines.generator.CachedModel;
import io.kvcache.engines.llamacpp.CachedGguf;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/// The server over llama.cpp.
@Timeout(300)
@Tag("slow")
final class LlamaChatServerTest extends ChatServerContract {

    private static final String CHAT = "/v1/chat/completions";

    @Override
    CachedModel<?> open(Path folder) throws IOException {
        return CachedGguf.open(folder, BLOCK_TOKENS, Map.of());
    }

    /// Blocks with tokens of an answer are computed once more with the next prompt, and stored then.
    @Test
    void givenAnAnswer_whenTheNextRequestGoesOnAtOnce_thenAllFullBlocksOfThePromptAreCached() throws Exception {
        String body = "{\"prompt\": %s, \"temperature\": 0, \"max_tokens\": %d}";
        String said = text(ask("POST", "/v1/completions", body.formatted(JSON.writeValueAsString(SYSTEM), 30)));
        String next = JSON.writeValueAsString(SYSTEM + said + "?");
        for (int cached : new int[] {
            whole(llama().model().encode(SYSTEM).length), whole(llama().model().encode(SYSTEM + said + "?").length - 1)
        }) {
            assertThat(JSON.readTree(ask("POST", "/v1/completions", body.formatted(next, 1))
                                    .body())
                            .at("/usage/prompt_tokens_details/cached_tokens")
                            .intValue())
                    .isEqualTo(cached);
        }
    }

    @Test
    void givenAChatThatTheEngineCannotTake_whenAsked_thenTheErrorSaysWhy(@TempDir Path other) throws Exception {
        String template = "tokenizer.chat_template";
        String zero = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\\u0000b\"}]}";
        String plain = zero.replace("\\u0000", "");
        assertThat(refusal(other, Map.of(template, "{{ something of its own }}"), plain))
                .contains("chat template of");
        assertThat(refusal(other, Map.of(template, "chatml"), zero)).contains("U+0000");
    }

    private static String refusal(Path folder, Map<String, Object> metadata, String body) throws Exception {
        try (CachedGguf model = CachedGguf.open(folder, BLOCK_TOKENS, metadata);
                ChatServer other = ChatServer.start(
                        model.generator(),
                        ChatOptions.of(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), "random"),
                        List.of())) {
            HttpResponse<String> answer =
                    ask("http://127.0.0.1:" + other.address().getPort(), "POST", CHAT, body);
            assertThat(answer.statusCode()).isEqualTo(400);
            JsonNode error = JSON.readTree(answer.body()).at("/error");
            assertThat(error.at("/param").stringValue()).isEqualTo("messages");
            return error.at("/message").stringValue();
        }
    }
}
