package io.kvcache.engines.jlama;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.engines.generator.Prompts;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ChatPromptTest {

    private static final List<ChatMessage> CHAT = List.of(
            new ChatMessage(ChatMessage.Role.SYSTEM, "Be brief."),
            new ChatMessage(ChatMessage.Role.USER, "Why?"),
            new ChatMessage(ChatMessage.Role.ASSISTANT, "So."),
            new ChatMessage(ChatMessage.Role.USER, "Oh."));

    @TempDir
    private Path folder;

    @Test
    void givenNoTemplate_whenAChatIsEncoded_thenEachMessageIsALine() {
        String text = "system: Be brief.\nuser: Why?\nassistant: So.\nuser: Oh.\nassistant: ";
        assertThat(TestModels.small().encode(CHAT)).isEqualTo(TestModels.small().encode(text));
    }

    @Test
    void givenAModelsTemplate_whenAChatIsEncoded_thenItIsByThat() throws Exception {
        RandomLlama.SMALL.write(folder);
        Files.writeString(folder.resolve("tokenizer_config.json"), """
                {"eos_token": "</s>", "bos_token": "<s>",
                 "chat_template": "{% for m in messages %}[{{ m.role }}|{{ m.content }}]{% endfor %}[assistant|"}
                """);
        try (JlamaModel model = JlamaModel.load(folder, ModelOptions.defaults())) {
            assertThat(model.encode(CHAT))
                    .isEqualTo(model.encode("[system|Be brief.][user|Why?][assistant|So.][user|Oh.][assistant|"));
        }
    }

    @Test
    void givenAChatThatGoesOn_whenEncoded_thenItBeginsAsBefore() {
        int[] before = TestModels.small().encode(CHAT);
        int[] more = TestModels.small().encodeMore("more");
        assertThat(TestModels.small().encode("more")).startsWith(1).endsWith(more);
        assertThat(Prompts.joined(before, more)).hasSize(before.length + 4);
    }

    @Test
    void givenACharacterInSeveralTokens_whenDecoded_thenItComesWholeWithItsLastOne() {
        TextDecoder decoder = TestModels.small().decoder();
        assertThat(decoder.add(RandomLlama.token('a'))).isEqualTo("a");
        byte[] bytes = "é€😀".getBytes(StandardCharsets.UTF_8);
        StringBuilder pieces = new StringBuilder();
        for (byte each : bytes) {
            String piece = decoder.add(3 + Byte.toUnsignedInt(each));
            pieces.append(piece.isEmpty() ? "." : piece);
        }
        assertThat(pieces.toString()).isEqualTo(".é..€...😀");
        assertThat(decoder.add(3 + 0xc3)).isEmpty();
        assertThat(decoder.rest()).isEqualTo("\ufffd");
        assertThat(decoder.add(2)).as("a special token").isEmpty();
    }
}
