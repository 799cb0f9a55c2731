package io.kvcache.engines.jlama;

import java.util.List;

/// What text to generate.
///
/// @param prompt tokens, see [JlamaModel#encode(String)] and [JlamaModel#encode(List)]
/// @param maxTokens to generate, at least 1
/// @param temperature 0 takes the likeliest token, at most 10
/// @param seed decides what is drawn at a temperature above 0
/// @param stops texts that end the answer and do not belong to it, none of them empty
@SuppressWarnings("ArrayRecordComponent")
public record TextRequest(int[] prompt, int maxTokens, float temperature, long seed, List<String> stops) {

    public TextRequest {
        stops = List.copyOf(stops);
        if (stops.contains("")) {
            throw new IllegalArgumentException("an empty text is among stops; each takes a character at least");
        }
    }
}
