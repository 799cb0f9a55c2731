package io.kvcache.engines.llamacpp;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.KvCache;
import io.kvcache.engines.generator.ChatMessage;
import io.kvcache.engines.generator.Generation;
import io.kvcache.engines.generator.GenerationRequest;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.generator.PrefixCachedGenerator.TokenListener;
import io.kvcache.engines.generator.RandomPrompts;
import io.kvcache.engines.generator.TextDecoder;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Texts and chats by the tokenizer and the template in a model's file.
@Timeout(300)
final class LlamaTextTest {

    private static final String CHAT_TEMPLATE = "tokenizer.chat_template";
    private static final List<ChatMessage> CHAT = List.of(
            new ChatMessage(ChatMessage.Role.SYSTEM, "Be brief."),
            new ChatMessage(ChatMessage.Role.USER, "Why, é?"),
            new ChatMessage(ChatMessage.Role.ASSISTANT, "So."),
            new ChatMessage(ChatMessage.Role.USER, "Oh."));

    private final LlamaModel model = LlamaTestModels.small();

    @TempDir
    private Path folder;

    private LlamaModel load(Map<String, Object> metadata) throws IOException {
        Path file = RandomGguf.SMALL.write(folder.resolve("model.gguf"), metadata);
        return LlamaModel.load(LlamaTestModels.library(), file, LlamaTestModels.OPTIONS);
    }

    private static String decode(LlamaModel model, int... tokens) {
        TextDecoder decoder = model.newDecoder();
        StringBuilder text = new StringBuilder();
        for (int token : tokens) {
            text.append(decoder.add(token));
        }
        return text.append(decoder.flush()).toString();
    }

    @Test
    void givenAText_whenEncoded_thenItsBeginningIsMarkedAndEachCharacterIsAToken() {
        int[] tokens = model.encode("a b");
        assertThat(tokens)
                .containsExactly(1, RandomGguf.tokenOf('a'), RandomGguf.tokenOf(' '), RandomGguf.tokenOf('b'));
        assertThat(model.encodeContinuation("a b")).containsExactly(tokens[1], tokens[2], tokens[3]);
        assertThat(model.encode("")).containsExactly(1);
        assertThat(model.encodeContinuation("")).isEmpty();
        assertThat(model.encode("a</s>")).containsExactly(1, RandomGguf.tokenOf('a'), 2);
        assertThat(model.stopTokens()).containsExactly(2);
    }

    @Test
    void givenTextsOfAnyLengthAndCharacter_whenEncoded_thenTheirTokensAreTheText() {
        for (String text : List.of("a", "é€😀", "a\0b\n", "text, ".repeat(5000))) {
            int[] tokens = model.encode(text);
            assertThat(tokens).hasSize(1 + text.getBytes(UTF_8).length);
            assertThat(decode(model, tokens)).isEqualTo(text);
        }
    }

    @Test
    void givenACharacterInSeveralTokens_whenDecoded_thenItComesWholeWithItsLastOne() {
        TextDecoder decoder = model.newDecoder();
        StringBuilder pieces = new StringBuilder();
        for (byte each : "é€😀".getBytes(UTF_8)) {
            String piece = decoder.add(RandomGguf.tokenOf(each));
            pieces.append(piece.isEmpty() ? "." : piece);
        }
        assertThat(pieces.toString()).isEqualTo(".é..€...😀");
        assertThat(decoder.add(RandomGguf.tokenOf((byte) 0xc3))).isEmpty();
        assertThat(decoder.add(2)).as("a special token").isEmpty();
        assertThat(decoder.flush()).isEqualTo("\ufffd");
        assertThat(decoder.add(RandomGguf.VOCABULARY - 1)).isEqualTo("tok511");
    }

    @Test
    void givenATokenLongerThanMost_whenDecoded_thenItIsWhole() throws IOException {
        String longWord = "long".repeat(50);
        List<Object> words = RandomGguf.words();
        words.set(RandomGguf.VOCABULARY - 1, longWord);
        try (LlamaModel other = load(Map.of("tokenizer.ggml.tokens", words))) {
            assertThat(decode(other, RandomGguf.VOCABULARY - 1)).isEqualTo(longWord);
        }
    }

    /// As most files have it: the tokens are then more than the bytes.
    @Test
    void givenATokenizerThatPutsASpaceFirst_whenEncoded_thenTheSpaceIsThere() throws IOException {
        try (LlamaModel other = load(Map.of("tokenizer.ggml.add_space_prefix", true))) {
            assertThat(other.encode("ab")).isEqualTo(model.encode(" ab"));
            assertThat(other.encode("</s>".repeat(9))).hasSize(10);
        }
    }

    @Test
    void givenAModelThatMarksTheEndToo_whenEncoded_thenAllTokensAreThere() throws IOException {
        Map<String, Object> marks =
                Map.of("tokenizer.ggml.add_space_prefix", true, "tokenizer.ggml.add_eos_token", true);
        try (LlamaModel other = load(marks)) {
            assertThat(other.encode("a")).containsExactly(1, RandomGguf.tokenOf(' '), RandomGguf.tokenOf('a'), 2);
        }
    }

    @Test
    void givenNoTemplate_whenAChatIsEncoded_thenEachMessageIsALine() {
        assertThat(model.encode(CHAT))
                .isEqualTo(model.encode("system: Be brief.\nuser: Why, é?\nassistant: So.\nuser: Oh.\nassistant: "));
    }

    @Test
    void givenAModelsTemplate_whenAChatIsEncoded_thenItIsByThat() throws IOException {
        String chatml = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content']"
                + " + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
                + "{% endif %}";
        try (LlamaModel other = load(Map.of(CHAT_TEMPLATE, chatml))) {
            assertThat(decode(other, other.encode(CHAT))).isEqualTo("""
                    <|im_start|>system
                    Be brief.<|im_end|>
                    <|im_start|>user
                    Why, é?<|im_end|>
                    <|im_start|>assistant
                    So.<|im_end|>
                    <|im_start|>user
                    Oh.<|im_end|>
                    <|im_start|>assistant
                    """);
            List<ChatMessage> many = Collections.nCopies(500, CHAT.get(1));
            assertThat(decode(other, other.encode(many)).lines().filter("Why, é?<|im_end|>"::equals))
                    .hasSize(500);
            List<ChatMessage> zero = List.of(CHAT.get(0), new ChatMessage(ChatMessage.Role.USER, "a\0b"));
            assertThatThrownBy(() -> other.encode(zero))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("message 1")
                    .hasMessageContaining("U+0000");
        }
    }

    /// It adds more to a message than the first buffer has room for.
    @Test
    void givenATemplateWithLongMarks_whenAChatIsEncoded_thenItIsWhole() throws IOException {
        String llama3 = "<|start_header_id|>{{ role }}<|end_header_id|>{{ content }}<|eot_id|>";
        try (LlamaModel other = load(Map.of(CHAT_TEMPLATE, llama3))) {
            List<ChatMessage> one = List.of(new ChatMessage(ChatMessage.Role.USER, ""));
            assertThat(decode(other, other.encode(one)))
                    .isEqualTo("<|start_header_id|>user<|end_header_id|>\n\n<|eot_id|>"
                            + "<|start_header_id|>assistant<|end_header_id|>\n\n");
        }
    }

    @Test
    void givenATemplateThatLlamaCppDoesNotKnow_whenAChatIsEncoded_thenTheErrorSaysSo() throws IOException {
        try (LlamaModel other = load(Map.of(CHAT_TEMPLATE, "{{ something of its own }}"))) {
            assertThatThrownBy(() -> other.encode(CHAT))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("does not know the chat template of model.gguf");
            assertThat(other.encode("a")).hasSize(2);
        }
    }

    @Test
    void givenAModelWithoutATokenizer_whenUsed_thenItGeneratesTokensAndSaysThatItTakesNoText() throws IOException {
        try (LlamaModel other = load(Map.of("tokenizer.ggml.model", "no_vocab"));
                KvCache cache = TieredKvCache.builder().hostBytes(64L << 20).build();
                PrefixCachedGenerator<LlamaModel> generator =
                        new PrefixCachedGenerator<>(other, cache, GeneratorOptions.DEFAULTS)) {
            assertThat(other.hasTokenizer()).isFalse();
            assertThat(other.vocabulary()).isEqualTo(RandomGguf.VOCABULARY);
            int[] prompt = RandomPrompts.random(5, 50);
            Generation made = generator.generate(GenerationRequest.greedy(prompt, 4), TokenListener.NONE);
            assertThat(made.tokens())
                    .isEqualTo(
                            LlamaTestModels.generateUncached(model, prompt, 4).tokens());
            for (Runnable asked : List.<Runnable>of(
                    () -> other.encode("a"),
                    () -> other.encodeContinuation("a"),
                    () -> other.encode(CHAT),
                    other::newDecoder,
                    other::stopTokens)) {
                assertThatThrownBy(asked::run)
                        .isInstanceOf(IllegalStateException.class)
                        .hasMessageContaining("model.gguf has no tokenizer");
            }
        }
    }

    @Test
    void givenWhatIsNoGgufFile_whenLoaded_thenTheErrorNamesIt() throws IOException {
        Path text = Files.writeString(folder.resolve("text"), "not a model");
        assertThatIOException()
                .isThrownBy(() -> LlamaModel.load(LlamaTestModels.library(), text, LlamaTestModels.OPTIONS))
                .withMessageContaining(text + " is not a GGUF file");
        assertThatIOException()
                .isThrownBy(() -> LlamaModel.load(LlamaTestModels.library(), folder, LlamaTestModels.OPTIONS))
                .withMessageContaining("one GGUF file");
    }
}
