package io.kvcache.core.cost;

import io.kvcache.core.identity.ModelPreset;

/// The time that an engine takes to prefill: a cost for each token, and a cost for each earlier token that it
/// attends to.
///
/// Either from a model and the speed of what computes it ([#of]), or from a rate that was measured
/// ([#ofTokenRate]), which takes all positions for equal.
///
/// @param secondsPerToken above 0
/// @param secondsPerPair for a token and one before it, 0 and up
public record PrefillCost(double secondsPerToken, double secondsPerPair) {

    public PrefillCost {
        if (!(secondsPerToken > 0) || !(secondsPerPair >= 0)) {
            throw new IllegalArgumentException("prefill takes " + secondsPerToken + " s a token and " + secondsPerPair
                    + " s a pair; must be above 0, and 0 and up");
        }
    }

    /// Returns the prefill cost of a model.
    ///
    /// @param flopsPerSecond floating-point operations that all devices together do in a second of prefill: their
    ///     peak times the share of it that is reached
    public static PrefillCost of(ModelPreset model, double flopsPerSecond) {
        if (!(flopsPerSecond > 0)) {
            throw new IllegalArgumentException("flopsPerSecond is " + flopsPerSecond + ", must be above 0");
        }
        return new PrefillCost(
                2 * model.activeParameters() / flopsPerSecond, model.prefillFlopsOfPrefixes(0, 2) / flopsPerSecond);
    }

    /// Returns the prefill cost of an engine with this measured rate.
    public static PrefillCost ofTokenRate(double tokensPerSecond) {
        if (!(tokensPerSecond > 0)) {
            throw new IllegalArgumentException("tokensPerSecond is " + tokensPerSecond + ", must be above 0");
        }
        return new PrefillCost(1 / tokensPerSecond, 0);
    }

    /// Tokens before a token that make it take twice what the first takes; infinity where all positions are equal.
    public double doublingTokens() {
        return secondsPerToken / secondsPerPair;
    }

    /// Seconds for the tokens at positions `[from, to)`, when all before them are there.
    public double seconds(long from, long to) {
        double tokens = to - from;
        return tokens * (secondsPerToken + secondsPerPair * (from + to) / 2.0);
    }
}
