package io.kvcache.engines.langchain4j;

import dev.langchain4j.model.output.TokenUsage;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// How many tokens a request took, and how many of its prompt came from the store.
///
/// Immutable.
public final class CachedTokenUsage extends TokenUsage {

    private final int cachedTokens;

    /// @param prompt tokens of the prompt
    /// @param cachedTokens of those, not computed
    /// @param answer tokens of the answer
    public CachedTokenUsage(int prompt, int cachedTokens, int answer) {
        super(prompt, answer);
        this.cachedTokens = cachedTokens;
    }

    /// Tokens of the prompt that were not computed.
    public int cachedTokens() {
        return cachedTokens;
    }

    /// The sum, of cached tokens too. What another kind of usage does not say counts as none.
    @Override
    public CachedTokenUsage add(TokenUsage other) {
        int theirs = other instanceof CachedTokenUsage usage ? usage.cachedTokens : 0;
        return new CachedTokenUsage(
                inputTokenCount() + count(other.inputTokenCount()),
                cachedTokens + theirs,
                outputTokenCount() + count(other.outputTokenCount()));
    }

    private static int count(@Nullable Integer tokens) {
        return tokens == null ? 0 : tokens;
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return super.equals(other) && other instanceof CachedTokenUsage usage && cachedTokens == usage.cachedTokens;
    }

    @Override
    public int hashCode() {
        return Objects.hash(super.hashCode(), cachedTokens);
    }

    @Override
    public String toString() {
        return super.toString() + " of which cached " + cachedTokens;
    }
}
