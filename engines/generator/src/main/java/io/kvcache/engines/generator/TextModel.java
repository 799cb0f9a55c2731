package io.kvcache.engines.generator;

import java.util.List;
import java.util.Set;

/// A model with a tokenizer, which takes texts and chats and answers in text.
///
/// **Threads.** Any number may encode at once.
public interface TextModel extends EngineModel {

    /// A name for people.
    String name();

    /// The tokens of a text, its beginning marked as the model wants it.
    ///
    /// @throws IllegalStateException when the model has no tokenizer, as with all methods below
    int[] encode(String text);

    /// The tokens of a text that goes on from another one: without the mark of a beginning.
    int[] encodeContinuation(String text);

    /// The tokens of a chat that the model is to answer, by the template that came with the model; without one,
    /// by [role lines][ChatMessage#toRoleLines(List)].
    ///
    /// @throws IllegalArgumentException when the engine cannot take a message's text
    /// @throws IllegalStateException when the engine cannot apply the model's template
    int[] encode(List<ChatMessage> messages);

    /// A new decoder, for the tokens of one answer.
    TextDecoder newDecoder();

    /// Tokens by which the model ends an answer.
    Set<Integer> stopTokens();
}
