package io.kvcache.engines.generator;

import java.util.List;

/// A text that was generated.
///
/// @param text without what ended it
/// @param stopped whether the model or a text of the request ended it, and not a number of tokens
/// @param generation the tokens, and what the store did for them
public record TextAnswer(String text, boolean stopped, Generation generation) {

    /// Hears of a text as it comes.
    @FunctionalInterface
    public interface Listener {

        /// Takes what came with a token, on the thread that generates; often nothing, as characters and
        /// stops may be spread over tokens. All that was given is the answer's text.
        ///
        /// @return whether to go on
        boolean accept(String more);
    }

    /// Generates until the model ends, or a text of the request comes, or there are as many tokens as
    /// were asked for.
    public static TextAnswer of(
            PrefixCachedGenerator<? extends TextModel> generator, TextRequest request, Listener listener) {
        TextModel model = generator.model();
        TextDecoder decoder = model.newDecoder();
        StopTextFilter stop = new StopTextFilter(request.stops());
        StringBuilder text = new StringBuilder();
        Generation made = generator.generate(
                new GenerationRequest(
                        request.prompt(),
                        request.maxTokens(),
                        request.temperature(),
                        request.seed(),
                        model.stopTokens(),
                        true),
                token -> {
                    String more = stop.add(decoder.add(token));
                    text.append(more);
                    return listener.accept(more) && !stop.isFound();
                });
        String rest = stop.add(decoder.flush()) + stop.flush();
        if (!rest.isEmpty()) {
            listener.accept(rest);
        }
        return new TextAnswer(
                text.append(rest).toString(), stop.isFound() || made.endReason() == Generation.EndReason.STOP, made);
    }

    /// Ends an answer before the first of some texts, and holds back what might become one.
    static final class StopTextFilter {

        private final List<String> stops;
        private String pendingText = "";
        private boolean found;

        StopTextFilter(List<String> stops) {
            this.stops = stops;
        }

        /// Adds text and returns the part of the answer that may be shown now.
        String add(String more) {
            if (found) {
                return "";
            }
            String all = pendingText + more;
            int end = all.length();
            for (String stop : stops) {
                int at = all.indexOf(stop);
                if (at >= 0 && at < end) {
                    end = at;
                    found = true;
                }
            }
            if (found) {
                pendingText = "";
                return all.substring(0, end);
            }
            int safe = all.length() - stopPrefixLength(all);
            pendingText = all.substring(safe);
            return all.substring(0, safe);
        }

        boolean isFound() {
            return found;
        }

        /// Returns the text that was held back and did not become a stop text.
        String flush() {
            String rest = pendingText;
            pendingText = "";
            return rest;
        }

        /// How much of the end of a text is the beginning of a stop.
        private int stopPrefixLength(String text) {
            int longest = 0;
            for (String stop : stops) {
                for (int length = Math.min(stop.length() - 1, text.length()); length > longest; length--) {
                    if (text.regionMatches(text.length() - length, stop, 0, length)) {
                        longest = length;
                    }
                }
            }
            return longest;
        }
    }

    /// A request to generate text.
    ///
    /// @param prompt tokens, see [TextModel#encode(String)] and [TextModel#encode(List)]
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
}
