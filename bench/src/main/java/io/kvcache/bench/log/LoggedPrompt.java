package io.kvcache.bench.log;

import java.util.List;

/// What a logged request had the model read.
public sealed interface LoggedPrompt {

    /// A text as it is.
    record Text(String text) implements LoggedPrompt {}

    /// A chat that is to be answered.
    record Chat(List<LoggedMessage> turns) implements LoggedPrompt {}

    /// Tokens that the client had made itself.
    @SuppressWarnings("ArrayRecordComponent") // nothing compares them
    record Tokens(int[] tokens) implements LoggedPrompt {}

    /// One message of a chat.
    record LoggedMessage(Role role, String content) {}

    /// Who says it. What tools answer is the user's to a model.
    enum Role {
        SYSTEM,
        USER,
        ASSISTANT
    }
}
