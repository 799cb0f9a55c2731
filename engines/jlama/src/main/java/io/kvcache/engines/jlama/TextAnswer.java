package io.kvcache.engines.jlama;

import io.kvcache.engines.generator.Generation;
import io.kvcache.engines.generator.GenerationRequest;
import io.kvcache.engines.generator.PrefixCachedGenerator;

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
    public static TextAnswer of(PrefixCachedGenerator<JlamaModel> generator, TextRequest request, Listener listener) {
        JlamaModel model = generator.model();
        TextDecoder decoder = model.decoder();
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
}
