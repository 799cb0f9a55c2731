package io.kvcache.engines.langchain4j;

import dev.langchain4j.data.message.AiMessage;
import dev.langchain4j.data.message.SystemMessage;
import dev.langchain4j.data.message.UserMessage;
import dev.langchain4j.exception.UnsupportedFeatureException;
import dev.langchain4j.model.chat.ChatModel;
import dev.langchain4j.model.chat.request.ChatRequest;
import dev.langchain4j.model.chat.request.ChatRequestParameters;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.output.FinishReason;
import io.kvcache.engines.generator.ChatMessage;
import io.kvcache.engines.generator.Generation;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.generator.TextAnswer;
import io.kvcache.engines.generator.TextAnswer.TextRequest;
import io.kvcache.engines.generator.TextModel;
import java.util.List;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;

/// A chat model whose requests skip the prefill of the tokens in the store.
///
/// It has no sessions: the store finds the state of a chat by its first tokens. [CachedTokenUsage] tells how many
/// tokens came from the store.
///
/// The model takes text messages of system, user and model, and a request's parameters `temperature`,
/// `maxOutputTokens` and `stopSequences`. It rejects tools, formats, pictures and other sampling parameters,
/// since it would ignore them.
///
/// **Ownership.** The generator stays the caller's.
///
/// **Threads.** Any; requests take turns at the model.
public final class PrefixCachedChatModel implements ChatModel {

    private final PrefixCachedGenerator<? extends TextModel> generator;
    private final ChatRequestParameters defaults;
    private final RandomGenerator seeds;

    /// @param usual what a request takes that does not say; the default temperature is 0, for a
    ///     number of tokens 256
    /// @param seeds where a request's seed comes from, which counts at a temperature above 0; used by any
    ///     thread
    public PrefixCachedChatModel(
            PrefixCachedGenerator<? extends TextModel> generator, ChatRequestParameters usual, RandomGenerator seeds) {
        this.generator = generator;
        this.defaults = ChatRequestParameters.builder()
                .temperature(0.0)
                .maxOutputTokens(256)
                .build()
                .overrideWith(usual);
        this.seeds = seeds;
    }

    @Override
    public ChatRequestParameters defaultRequestParameters() {
        return defaults;
    }

    @Override
    public ChatResponse doChat(ChatRequest request) {
        ChatRequestParameters parameters = request.parameters();
        reject("topP", parameters.topP());
        reject("topK", parameters.topK());
        reject("frequencyPenalty", parameters.frequencyPenalty());
        reject("presencePenalty", parameters.presencePenalty());
        reject("responseFormat", parameters.responseFormat());
        reject("toolSpecifications", nonEmpty(parameters.toolSpecifications()));
        List<ChatMessage> messages =
                request.messages().stream().map(PrefixCachedChatModel::message).toList();
        List<String> stops = parameters.stopSequences();
        TextAnswer answer = TextAnswer.of(
                generator,
                new TextRequest(
                        generator.model().encode(messages),
                        parameters.maxOutputTokens(),
                        parameters.temperature().floatValue(),
                        seeds.nextLong(),
                        stops == null ? List.of() : stops),
                _ -> true);
        Generation made = answer.generation();
        return ChatResponse.builder()
                .aiMessage(AiMessage.from(answer.text()))
                .modelName(generator.model().name())
                .tokenUsage(new CachedTokenUsage(made.promptTokens(), made.cachedTokens(), made.tokens().length))
                .finishReason(answer.stopped() ? FinishReason.STOP : FinishReason.LENGTH)
                .build();
    }

    private static @Nullable Object nonEmpty(@Nullable List<?> list) {
        return list == null || list.isEmpty() ? null : list;
    }

    private static void reject(String name, @Nullable Object value) {
        if (value != null) {
            throw new UnsupportedFeatureException(name + " is " + value + "; this model takes none");
        }
    }

    private static ChatMessage message(dev.langchain4j.data.message.ChatMessage message) {
        return switch (message) {
            case SystemMessage system -> new ChatMessage(ChatMessage.Role.SYSTEM, system.text());
            case UserMessage user
            when user.hasSingleText() -> new ChatMessage(ChatMessage.Role.USER, user.singleText());
            case AiMessage said
            when said.text() != null && !said.hasToolExecutionRequests() ->
                new ChatMessage(ChatMessage.Role.ASSISTANT, said.text());
            default ->
                throw new UnsupportedFeatureException("a message of type " + message.type() + " that is not text");
        };
    }
}
