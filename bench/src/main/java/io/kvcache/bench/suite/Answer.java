package io.kvcache.bench.suite;

/// The answer to a question: medians over the rounds, and of the ratio the median of each round's.
///
/// @param ratio value by reference; 0 when the reference is 0
/// @param runs rounds
/// @param path how the bytes of the value travelled; empty where none did
public record Answer(Question question, double value, double againstValue, double ratio, int runs, String path) {

    public boolean ok() {
        return question.budget().isMet(value, ratio);
    }
}
