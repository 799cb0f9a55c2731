package io.kvcache.engines.jlama;

import com.github.tjake.jlama.safetensors.prompt.PromptContext;
import com.github.tjake.jlama.safetensors.prompt.PromptSupport;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/// One message of a chat.
///
/// @param role of the speaker
/// @param content its text
public record ChatMessage(Role role, String content) {

    /// Speakers.
    public enum Role {
        SYSTEM,
        USER,
        ASSISTANT
    }

    /// A chat as the text that a model takes it in: by the template that came with the model; without one, a line for
    /// each message with its role before it.
    static PromptContext prompt(Optional<PromptSupport> template, List<ChatMessage> messages) {
        return template.isPresent() ? fromTemplate(template.get(), messages) : PromptContext.of(fromRoles(messages));
    }

    private static PromptContext fromTemplate(PromptSupport template, List<ChatMessage> messages) {
        PromptSupport.Builder builder = template.builder().addGenerationPrompt(true);
        for (ChatMessage message : messages) {
            switch (message.role()) {
                case SYSTEM -> builder.addSystemMessage(message.content());
                case USER -> builder.addUserMessage(message.content());
                case ASSISTANT -> builder.addAssistantMessage(message.content());
            }
        }
        return builder.build();
    }

    private static String fromRoles(List<ChatMessage> messages) {
        StringBuilder text = new StringBuilder();
        for (ChatMessage message : messages) {
            text.append(message.role().name().toLowerCase(Locale.ROOT))
                    .append(": ")
                    .append(message.content())
                    .append('\n');
        }
        return text.append("assistant: ").toString();
    }
}
