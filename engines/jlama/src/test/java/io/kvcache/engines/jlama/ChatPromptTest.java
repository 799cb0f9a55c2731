package io.kvcache.engines.jlama;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.engines.generator.ChatMessage;
import io.kvcache.engines.generator.RandomPrompts;
import io.kvcache.engines.generator.TextDecoder;
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
        assertThat(JlamaTestModels.small().encode(CHAT))
                .isEqualTo(JlamaTestModels.small().encode(text));
    }

    @Test
    void givenAModelsTemplate_whenAChatIsEncoded_thenItIsByThat() throws Exception {
        RandomLlama.SMALL.write(folder);
        Files.writeString(folder.resolve("tokenizer_config.json"), """
                {"eos_token": "</s>", "bos_token": "<s>",
                 "chat_template": "{% for m in messages %}[{{ m.role }}|{{ m.content }}]{% endfor %}[assistant|"}
                """);
        try (JlamaModel model = JlamaModel.load(folder, JlamaOptions.defaults())) {
            assertThat(model.encode(CHAT))
                    .isEqualTo(model.encode("[system|Be brief.][user|Why?][assistant|So.][user|Oh.][assistant|"));
        }
    }

    /// CVE-2025-59340: the mapper of the template engine makes objects of any class.
    @Test
    void givenATemplateThatReachesForAFile_whenAChatIsEncoded_thenTheFileIsNotRead() throws Exception {
        RandomLlama.SMALL.write(folder);
        Path secret = Files.writeString(folder.resolve("secret.json"), "\"treasure\"");
        String mapper = "____int3rpr3t3r____.config.objectMapper";
        Files.writeString(folder.resolve("tokenizer_config.json"), """
                {"eos_token": "</s>", "bos_token": "<s>",
                 "chat_template": "{%% set m = %s %%}{%% set t = m.getTypeFactory().constructFromCanonical('java.net.URL') %%}\
                {%% set u = m.convertValue('%s', t) %%}chat[{{ m.readTree(u) }}]"}
                """.formatted(mapper, secret.toUri()));
        try (JlamaModel model = JlamaModel.load(folder, JlamaOptions.defaults())) {
            assertThat(said(model)).contains("chat").doesNotContain("treasure");
        }
    }

    /// CVE-2026-25526: a loop that reaches the class of what it goes over.
    @Test
    void givenATemplateThatReachesForAClass_whenAChatIsEncoded_thenItGetsNone() throws Exception {
        RandomLlama.SMALL.write(folder);
        Files.writeString(folder.resolve("tokenizer_config.json"), """
                {"eos_token": "</s>", "bos_token": "<s>",
                 "chat_template": "chat[{% for class, bytes in ['abc'] %}{{ class }}{% endfor %}]"}
                """);
        try (JlamaModel model = JlamaModel.load(folder, JlamaOptions.defaults())) {
            assertThat(said(model)).contains("chat").doesNotContain("java.lang");
        }
    }

    private static String said(JlamaModel model) {
        TextDecoder decoder = model.newDecoder();
        StringBuilder text = new StringBuilder();
        for (int token : model.encode(CHAT)) {
            text.append(decoder.add(token));
        }
        return text.append(decoder.flush()).toString();
    }

    @Test
    void givenAChatThatGoesOn_whenEncoded_thenItBeginsAsBefore() {
        int[] before = JlamaTestModels.small().encode(CHAT);
        int[] more = JlamaTestModels.small().encodeContinuation("more");
        assertThat(JlamaTestModels.small().encode("more")).startsWith(1).endsWith(more);
        assertThat(RandomPrompts.concatenate(before, more)).hasSize(before.length + 4);
    }

    @Test
    void givenACharacterInSeveralTokens_whenDecoded_thenItComesWholeWithItsLastOne() {
        TextDecoder decoder = JlamaTestModels.small().newDecoder();
        assertThat(decoder.add(RandomLlama.tokenOf('a'))).isEqualTo("a");
        byte[] bytes = "é€😀".getBytes(StandardCharsets.UTF_8);
        StringBuilder pieces = new StringBuilder();
        for (byte each : bytes) {
            String piece = decoder.add(3 + Byte.toUnsignedInt(each));
            pieces.append(piece.isEmpty() ? "." : piece);
        }
        assertThat(pieces.toString()).isEqualTo(".é..€...😀");
        assertThat(decoder.add(3 + 0xc3)).isEmpty();
        assertThat(decoder.flush()).isEqualTo("\ufffd");
        assertThat(decoder.add(2)).as("a special token").isEmpty();
    }
}
