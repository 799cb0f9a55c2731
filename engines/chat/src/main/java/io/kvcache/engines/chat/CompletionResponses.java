package io.kvcache.engines.chat;

import io.kvcache.engines.generator.Generation;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// The JSON of one answer, whole or in pieces, as the protocol has it.
final class CompletionResponses {

    private static final JsonMapper JSON = JsonMapper.builder().build();

    private final boolean chat;
    private final String model;
    private final String id;
    private final long created;

    /// @param created seconds since 1970
    CompletionResponses(boolean chat, String model, long created) {
        this.chat = chat;
        this.model = model;
        this.created = created;
        id = (chat ? "chatcmpl-" : "cmpl-") + UUID.randomUUID();
    }

    /// How many tokens there were.
    ///
    /// @param prompt of the prompt
    /// @param cached of those, from the store
    /// @param completion of the answer
    record TokenUsage(int prompt, int cached, int completion) {

        static TokenUsage of(Generation made) {
            return new TokenUsage(made.promptTokens(), made.cachedTokens(), made.tokens().length);
        }
    }

    String completion(String text, String end, TokenUsage usage) {
        ObjectNode root = responseRoot(chat ? "chat.completion" : "text_completion");
        ObjectNode choice = addChoice(root, end);
        if (chat) {
            choice.putObject("message").put("role", "assistant").put("content", text);
        } else {
            choice.put("text", text);
        }
        addUsage(usage, root);
        return root.toString();
    }

    /// The first piece of a chat, which has a role and no text.
    String firstChunk() {
        ObjectNode root = responseRoot("chat.completion.chunk");
        addChoice(root, null).putObject("delta").put("role", "assistant").put("content", "");
        return root.toString();
    }

    String textChunk(String text) {
        ObjectNode root = responseRoot(chat ? "chat.completion.chunk" : "text_completion");
        ObjectNode choice = addChoice(root, null);
        if (chat) {
            choice.putObject("delta").put("content", text);
        } else {
            choice.put("text", text);
        }
        return root.toString();
    }

    /// Returns the last chunk, with the reason why the answer ended.
    String lastChunk(String end) {
        ObjectNode root = responseRoot(chat ? "chat.completion.chunk" : "text_completion");
        ObjectNode choice = addChoice(root, end);
        if (chat) {
            choice.putObject("delta");
        } else {
            choice.put("text", "");
        }
        return root.toString();
    }

    /// The piece after the last one, for clients that asked for it.
    String usageChunk(TokenUsage usage) {
        ObjectNode root = responseRoot(chat ? "chat.completion.chunk" : "text_completion");
        root.putArray("choices");
        addUsage(usage, root);
        return root.toString();
    }

    /// An error.
    ///
    /// @param code for programs
    /// @param field of the request; empty for none
    static String error(String type, String code, String field, String message) {
        ObjectNode root = JSON.createObjectNode();
        ObjectNode error = root.putObject("error").put("message", message).put("type", type);
        if (field.isEmpty()) {
            error.putNull("param");
        } else {
            error.put("param", field);
        }
        error.put("code", code);
        return root.toString();
    }

    static String models(String model) {
        ObjectNode root = JSON.createObjectNode().put("object", "list");
        root.putArray("data")
                .addObject()
                .put("id", model)
                .put("object", "model")
                .put("created", 0)
                .put("owned_by", "kvcache");
        return root.toString();
    }

    private ObjectNode responseRoot(String object) {
        return JSON.createObjectNode()
                .put("id", id)
                .put("object", object)
                .put("created", created)
                .put("model", model);
    }

    private static ObjectNode addChoice(ObjectNode root, @Nullable String end) {
        ObjectNode choice = root.putArray("choices").addObject().put("index", 0);
        if (end == null) {
            choice.putNull("finish_reason");
        } else {
            choice.put("finish_reason", end);
        }
        return choice;
    }

    private static void addUsage(TokenUsage usage, ObjectNode root) {
        root.putObject("usage")
                .put("prompt_tokens", usage.prompt())
                .put("completion_tokens", usage.completion())
                .put("total_tokens", usage.prompt() + usage.completion())
                .putObject("prompt_tokens_details")
                .put("cached_tokens", usage.cached());
    }
}
