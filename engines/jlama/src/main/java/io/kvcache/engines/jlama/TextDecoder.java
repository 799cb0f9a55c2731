package io.kvcache.engines.jlama;

import com.github.tjake.jlama.safetensors.tokenizer.Tokenizer;
import com.github.tjake.jlama.safetensors.tokenizer.TokenizerModel;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/// Turns the tokens of one answer into text, as they come.
///
/// A character may be spread over several tokens of one byte each. The decoder keeps them until the character is
/// whole. (Jlama's own decoder keeps them from one answer to the next.) Bytes that are not UTF-8 become U+FFFD.
///
/// **Threads.** Those that generate, one at a time: Jlama's decoder is shared below.
public final class TextDecoder {

    private static final int HEX = 16;

    private final Tokenizer tokenizer;
    private final TokenizerModel tokenizerModel;
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

    TextDecoder(Tokenizer tokenizer) {
        this.tokenizer = tokenizer;
        tokenizerModel = tokenizer.getModel();
    }

    /// The text that a token completes; perhaps none. Special tokens have none.
    public String add(int token) {
        String word = tokenizerModel.vocabLookup.inverse().get((long) token);
        if (word == null || tokenizerModel.isSpecialToken((long) token)) {
            return "";
        }
        if (isByte(word)) {
            bytes.write(Integer.parseInt(word, 3, 5, HEX));
            return isCharacterComplete() ? flush() : "";
        }
        String decoded = tokenizer.decode(token);
        return flush() + (decoded == null ? "" : decoded);
    }

    /// Returns the rest at the end.
    public String flush() {
        String text = bytes.toString(StandardCharsets.UTF_8);
        bytes.reset();
        return text;
    }

    private boolean isByte(@Nullable String word) {
        return tokenizerModel.byteFallback && word != null && word.matches("<0x[0-9A-Fa-f]{2}>");
    }

    /// Returns whether all bytes that the first one announces have arrived.
    private boolean isCharacterComplete() {
        byte[] here = bytes.toByteArray();
        int ones = Integer.numberOfLeadingZeros(~(here[0] << 24));
        return here.length >= Math.max(1, Math.min(ones, 4));
    }
}
