package io.kvcache.engines.cli;

import io.kvcache.engines.generator.ChatMessage;
import io.kvcache.engines.jlama.TextEncoder;
import io.kvcache.planner.log.LoggedRequest.LoggedPrompt;
import io.kvcache.planner.log.TokenizerLoader;
import io.kvcache.planner.log.TokenizerLoader.LogTokenizer;
import java.io.IOException;
import java.nio.file.Path;

/// The tokenizers of `trace import`, by Jlama. A service, so its class and constructor are public.
public final class JlamaTokenizerLoader implements TokenizerLoader {

    @Override
    public LogTokenizer load(Path folder) throws IOException {
        TextEncoder encoder = TextEncoder.load(folder);
        return prompt -> tokens(encoder, prompt);
    }

    private static int[] tokens(TextEncoder encoder, LoggedPrompt prompt) {
        return switch (prompt) {
            case LoggedPrompt.Text text -> encoder.encode(text.text());
            case LoggedPrompt.Tokens ids -> ids.tokens();
            case LoggedPrompt.Chat chat ->
                encoder.encode(
                        chat.turns().stream().map(JlamaTokenizerLoader::message).toList());
        };
    }

    private static ChatMessage message(LoggedPrompt.LoggedMessage loggedMessage) {
        return new ChatMessage(
                switch (loggedMessage.role()) {
                    case SYSTEM -> ChatMessage.Role.SYSTEM;
                    case USER -> ChatMessage.Role.USER;
                    case ASSISTANT -> ChatMessage.Role.ASSISTANT;
                },
                loggedMessage.content());
    }
}
