package io.kvcache.spring.example;

import static org.assertj.core.api.Assertions.assertThat;

import dev.langchain4j.data.message.SystemMessage;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.model.chat.ChatModel;
import dev.langchain4j.model.chat.response.ChatResponse;
import io.kvcache.core.KvCache;
import io.kvcache.engines.chat.ChatOptions;
import io.kvcache.engines.chat.ChatServer;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.jlama.JlamaModel;
import io.kvcache.engines.jlama.RandomLlama;
import io.kvcache.engines.langchain4j.CachedTokenUsage;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;

/// The examples with a small random model.
final class ExamplesTest {

    private static final Duration PATIENCE = Duration.ofSeconds(60);

    @TempDir
    private static Path folder;

    private static ConfigurableApplicationContext langChain;

    @BeforeAll
    static void start() throws Exception {
        langChain = run(
                LangChainApplication.class,
                "--kvcache.host-bytes=64MB",
                "--example.model=" + RandomLlama.SMALL.write(folder));
    }

    @AfterAll
    static void stop() {
        langChain.close();
    }

    private static ConfigurableApplicationContext run(Class<?> application, String... arguments) {
        return new SpringApplicationBuilder(application)
                .web(WebApplicationType.NONE)
                .run(arguments);
    }

    @SuppressWarnings("unchecked")
    private static PrefixCachedGenerator<JlamaModel> generator() {
        return langChain.getBean(PrefixCachedGenerator.class);
    }

    @Test
    void givenLangchain4j_whenAskedTwice_thenTheSecondTimeMostOfThePromptComesFromTheCache() throws Exception {
        ChatModel model = langChain.getBean(ChatModel.class);
        List<dev.langchain4j.data.message.ChatMessage> messages = List.of(
                SystemMessage.from("You answer in as few words as can be. ".repeat(3)), UserMessage.from("Why?"));
        assertThat(usage(model.chat(messages)).cachedTokens()).isZero();
        assertThat(generator().awaitStored(PATIENCE)).isTrue();
        CachedTokenUsage second = usage(model.chat(messages));
        assertThat(second.cachedTokens()).isGreaterThan(second.inputTokenCount() / 2);
        assertThat(langChain.getBean(KvCache.class).stats().hitRatio()).isPositive();
    }

    private static CachedTokenUsage usage(ChatResponse response) {
        return (CachedTokenUsage) response.tokenUsage();
    }

    @Test
    void givenSpringAi_whenItAsksTheChatServer_thenTheSecondAnswerIsTheSameFromTheCache() throws Exception {
        ChatOptions options = ChatOptions.of(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), "random");
        try (ChatServer server = ChatServer.start(generator(), options, List.of());
                ConfigurableApplicationContext context = run(
                        SpringAiApplication.class,
                        "--spring.ai.model.chat=openai",
                        "--spring.ai.openai.api-key=none",
                        "--spring.ai.openai.base-url=http://127.0.0.1:"
                                + server.address().getPort() + "/v1",
                        "--spring.ai.openai.chat.model=random",
                        "--spring.ai.openai.chat.temperature=0",
                        "--spring.ai.openai.chat.max-tokens=20",
                        "--kvcache.host-bytes=32MB")) {
            SpringAiApplication.Assistant assistant = context.getBean(SpringAiApplication.Assistant.class);
            var first = assistant.answer("Why?");
            assertThat(generator().awaitStored(PATIENCE)).isTrue();
            var second = assistant.answer("Why?");
            assertThat(text(second)).isNotEmpty().isEqualTo(text(first));
            assertThat(second.getMetadata().getUsage().getCacheReadInputTokens())
                    .isGreaterThan(100);
        }
    }

    private static String text(org.springframework.ai.chat.model.ChatResponse response) {
        return String.valueOf(
                Objects.requireNonNull(response.getResult()).getOutput().getText());
    }
}
