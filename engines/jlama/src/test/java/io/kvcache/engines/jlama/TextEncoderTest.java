package io.kvcache.engines.jlama;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import io.kvcache.engines.generator.ChatMessage;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class TextEncoderTest {

    @TempDir
    private Path folder;

    private TextEncoder load() throws IOException {
        RandomLlama.SMALL.writeTokenizer(folder);
        return TextEncoder.load(folder);
    }

    @Test
    void givenATokenizerWithoutWeights_whenATextIsEncoded_thenItHasTheModelsTokens() throws Exception {
        TextEncoder encoder = load();
        assertThat(encoder.encode("a text, é"))
                .isEqualTo(JlamaTestModels.small().encodeContinuation("a text, é"));
        List<ChatMessage> chat = List.of(new ChatMessage(ChatMessage.Role.USER, "Why?"));
        assertThat(encoder.encode(chat)).isEqualTo(encoder.encode("user: Why?\nassistant: "));
    }

    @Test
    void givenAFolderWithoutATokenizer_whenLoaded_thenTheErrorNamesTheFile() {
        assertThatIOException()
                .isThrownBy(() -> TextEncoder.load(folder))
                .withMessageContaining(folder.toString())
                .withMessageContaining("config.json");
    }

    @Test
    void givenAnUnknownKindOfModel_whenLoaded_thenTheErrorSaysWhichThereAre() throws Exception {
        load();
        Files.writeString(folder.resolve("config.json"), "{\"model_type\": \"unheard\"}");
        assertThatIOException()
                .isThrownBy(() -> TextEncoder.load(folder))
                .withMessageContaining("'unheard'")
                .withMessageContaining("llama");
    }

    @Test
    void givenAFileThatIsNoTokenizer_whenLoaded_thenTheErrorNamesIt() throws Exception {
        load();
        Files.writeString(folder.resolve("tokenizer.json"), "[1, 2]");
        assertThatIOException().isThrownBy(() -> TextEncoder.load(folder)).withMessageContaining("tokenizer.json");
    }
}
