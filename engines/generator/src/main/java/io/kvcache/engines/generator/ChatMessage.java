package io.kvcache.engines.generator;

import java.util.List;
import java.util.Locale;

/// One message of a chat.
///
/// @param role of the speaker
/// @param content its text
public record ChatMessage(Role role, String content) {

    /// Speakers.
    public enum Role {
        SYSTEM,
        USER,
        ASSISTANT;

        /// The name that templates of chats and OpenAI's protocol have for it.
        public String templateName() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /// A chat for a model without a template: a line for each message with its role before it, and the beginning
    /// of the answer's line.
    public static String toRoleLines(List<ChatMessage> messages) {
        StringBuilder text = new StringBuilder();
        for (ChatMessage message : messages) {
            text.append(message.role().templateName())
                    .append(": ")
                    .append(message.content())
                    .append('\n');
        }
        return text.append("assistant: ").toString();
    }
}
