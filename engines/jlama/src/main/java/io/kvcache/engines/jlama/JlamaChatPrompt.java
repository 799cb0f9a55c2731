package io.kvcache.engines.jlama;

import com.github.tjake.jlama.safetensors.prompt.PromptContext;
import com.github.tjake.jlama.safetensors.prompt.PromptSupport;
import io.kvcache.engines.generator.ChatMessage;
import java.util.List;
import java.util.Optional;

/// A chat as the text that a model takes it in.
final class JlamaChatPrompt {

    private JlamaChatPrompt() {}

    /// By the template that came with the model; without one, a line for each message with its role before it.
    static PromptContext of(Optional<PromptSupport> template, List<ChatMessage> messages) {
        return template.isPresent()
                ? fromTemplate(template.get(), messages)
                : PromptContext.of(ChatMessage.toRoleLines(messages));
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
}
