package io.kvcache.engines.jlama;

/// One message of a chat.
///
/// @param role who says it
/// @param content what he says
public record ChatMessage(Role role, String content) {

    /// Who says something.
    public enum Role {
        SYSTEM,
        USER,
        ASSISTANT
    }
}
