package io.kvcache.engines.jlama;

import com.fasterxml.jackson.databind.JsonNode;
import com.github.tjake.jlama.model.ModelSupport.ModelType;
import com.github.tjake.jlama.safetensors.tokenizer.Tokenizer;
import com.github.tjake.jlama.util.JsonSupport;
import io.kvcache.engines.generator.ChatMessage;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/// The tokens of texts and chats by a model's own tokenizer, without its weights: what plans with a log of
/// requests needs of a model.
///
/// Nothing marks the beginning of a text, unless the model's template does.
///
/// **Threads.** Any number at once; Jlama's tokenizers keep nothing of what they encode.
public final class TextEncoder {

    private final Tokenizer tokenizer;

    private TextEncoder(Tokenizer tokenizer) {
        this.tokenizer = tokenizer;
    }

    /// Reads a tokenizer.
    ///
    /// @param folder has `tokenizer.json`, `config.json`, whose `model_type` says which kind of
    ///     tokenizer it is, and
    ///     perhaps `tokenizer_config.json` with a template for chats, as Hugging Face lays them out
    /// @throws IOException that names the file that is missing or wrong
    public static TextEncoder load(Path folder) throws IOException {
        for (String file : new String[] {"config.json", "tokenizer.json"}) {
            if (!Files.isReadable(folder.resolve(file))) {
                throw new IOException(folder + " has no tokenizer: it has no readable " + file);
            }
        }
        ModelType type = type(folder.resolve("config.json"));
        try {
            return new TextEncoder(
                    type.tokenizerClass.getConstructor(Path.class).newInstance(folder));
        } catch (ReflectiveOperationException | RuntimeException failed) {
            Throwable cause = failed.getCause() == null ? failed : failed.getCause();
            throw new IOException(
                    folder.resolve("tokenizer.json") + " is not a tokenizer of " + type + ": " + cause, failed);
        }
    }

    private static ModelType type(Path config) throws IOException {
        JsonNode root = JsonSupport.om.readTree(config.toFile());
        String named = root.path("model_type").asText("").toUpperCase(Locale.ROOT);
        return Arrays.stream(ModelType.values())
                .filter(type -> type.name().equals(named))
                .findFirst()
                .orElseThrow(() -> new IOException(config + ": model_type is '" + named.toLowerCase(Locale.ROOT)
                        + "', must be one of " + modelTypeNames()));
    }

    private static String modelTypeNames() {
        return Arrays.stream(ModelType.values())
                .map(type -> type.name().toLowerCase(Locale.ROOT))
                .collect(Collectors.joining(", "));
    }

    /// The tokens of a text.
    public int[] encode(String text) {
        return Arrays.stream(tokenizer.encode(text)).mapToInt(Math::toIntExact).toArray();
    }

    /// The tokens of a chat that the model is to answer, by the template that came with it, or plainly.
    public int[] encode(List<ChatMessage> messages) {
        return encode(JlamaChatPrompt.of(tokenizer.promptSupport(), messages).getPrompt());
    }
}
