package io.kvcache.engines.langchain4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.langchain4j.data.message.ChatMessage;
import dev.langchain4j.data.message.SystemMessage;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.exception.UnsupportedFeatureException;
import dev.langchain4j.model.chat.request.ChatRequest;
import dev.langchain4j.model.chat.request.ChatRequestParameters;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.output.FinishReason;
import dev.langchain4j.model.output.TokenUsage;
import io.kvcache.engines.jlama.CachedLlama;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(180)
final class PrefixCachedChatModelTest {

    private static final int BLOCK_TOKENS = 16;
    private static final SystemMessage SYSTEM =
            SystemMessage.from("You answer in as few words as can be, and never ask anything back. ".repeat(2));

    @TempDir
    private static Path folder;

    private static CachedLlama llama;
    private static PrefixCachedChatModel chat;

    @BeforeAll
    static void load() throws Exception {
        llama = CachedLlama.open(folder, BLOCK_TOKENS);
        ChatRequestParameters usual =
                ChatRequestParameters.builder().maxOutputTokens(20).build();
        chat = new PrefixCachedChatModel(llama.generator(), usual, new Random(1));
    }

    @AfterAll
    static void close() {
        llama.close();
    }

    @BeforeEach
    void forget() throws InterruptedException {
        llama.dropAll();
    }

    private static ChatResponse ask(List<ChatMessage> messages) throws InterruptedException {
        ChatResponse response = chat.chat(messages);
        llama.awaitStored();
        return response;
    }

    @Test
    void givenAChat_whenItGoesOn_thenUsageSaysWhatWasCached() throws Exception {
        List<ChatMessage> messages = new ArrayList<>(List.of(SYSTEM, UserMessage.from("Why?")));
        ChatResponse first = ask(messages);
        assertThat(first.tokenUsage()).isInstanceOf(CachedTokenUsage.class);
        assertThat(((CachedTokenUsage) first.tokenUsage()).cachedTokens()).isZero();
        assertThat(first.tokenUsage().outputTokenCount()).isEqualTo(20);
        assertThat(first.finishReason()).isEqualTo(FinishReason.LENGTH);
        assertThat(ask(messages).aiMessage().text())
                .isNotEmpty()
                .isEqualTo(first.aiMessage().text());

        messages.add(first.aiMessage());
        messages.add(UserMessage.from("And why is that?"));
        ChatResponse second = ask(messages);
        CachedTokenUsage usage = (CachedTokenUsage) second.tokenUsage();
        assertThat(usage.cachedTokens())
                .isGreaterThanOrEqualTo(first.tokenUsage().inputTokenCount() / BLOCK_TOKENS * BLOCK_TOKENS)
                .isLessThan(usage.inputTokenCount());
    }

    @Test
    void givenAStopSequence_whenTheAnswerHasIt_thenItEndsBefore() throws Exception {
        List<ChatMessage> messages = List.of(UserMessage.from("Why?"));
        String all = ask(messages).aiMessage().text();
        String stop = all.substring(4, 6);
        ChatResponse response = chat.chat(ChatRequest.builder()
                .messages(messages)
                .parameters(ChatRequestParameters.builder()
                        .stopSequences(List.of(stop))
                        .build())
                .build());
        assertThat(response.aiMessage().text()).isEqualTo(all.substring(0, all.indexOf(stop)));
        assertThat(response.finishReason()).isEqualTo(FinishReason.STOP);
    }

    @Test
    void givenWhatItCannotDo_whenAsked_thenItRefusesAndSaysWhat() {
        ChatRequest request = ChatRequest.builder()
                .messages(UserMessage.from("Why?"))
                .parameters(ChatRequestParameters.builder().topP(0.5).build())
                .build();
        assertThatThrownBy(() -> chat.chat(request))
                .isInstanceOf(UnsupportedFeatureException.class)
                .hasMessageContaining("topP is 0.5");
    }

    @Test
    void givenUsages_whenAdded_thenSoAreCachedTokens() {
        CachedTokenUsage one = new CachedTokenUsage(100, 64, 5);
        assertThat(one.add(new CachedTokenUsage(50, 32, 6))).isEqualTo(new CachedTokenUsage(150, 96, 11));
        assertThat(one.add(new TokenUsage(1, 2))).isEqualTo(new CachedTokenUsage(101, 64, 7));
        assertThat(one).isNotEqualTo(new CachedTokenUsage(100, 63, 5)).hasToString(one.toString());
    }
}
