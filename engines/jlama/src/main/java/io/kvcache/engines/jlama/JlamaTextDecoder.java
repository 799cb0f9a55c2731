package io.kvcache.engines.jlama;

import com.github.tjake.jlama.safetensors.tokenizer.Tokenizer;
import com.github.tjake.jlama.safetensors.tokenizer.TokenizerModel;
import io.kvcache.engines.generator.TextDecoder;
import io.kvcache.engines.generator.Utf8StreamDecoder;

/// Turns the tokens of one answer into text by Jlama's tokenizer. Tokens of one byte each are decoded here: Jlama's own
/// decoder keeps them from one answer to the next.
///
/// **Threads.** Those that generate, one at a time: Jlama's decoder is shared below.
final class JlamaTextDecoder implements TextDecoder {

    private static final int HEX = 16;

    private final Tokenizer tokenizer;
    private final TokenizerModel tokenizerModel;
    private final Utf8StreamDecoder bytes = new Utf8StreamDecoder();

    JlamaTextDecoder(Tokenizer tokenizer) {
        this.tokenizer = tokenizer;
        tokenizerModel = tokenizer.getModel();
    }

    @Override
    public String add(int token) {
        String word = tokenizerModel.vocabLookup.inverse().get((long) token);
        if (word == null || tokenizerModel.isSpecialToken((long) token)) {
            return "";
        }
        if (isByte(word)) {
            return bytes.add((byte) Integer.parseInt(word, 3, 5, HEX));
        }
        String decoded = tokenizer.decode(token);
        return flush() + (decoded == null ? "" : decoded);
    }

    @Override
    public String flush() {
        return bytes.flush();
    }

    private boolean isByte(String word) {
        return tokenizerModel.byteFallback && word.matches("<0x[0-9A-Fa-f]{2}>");
    }
}
