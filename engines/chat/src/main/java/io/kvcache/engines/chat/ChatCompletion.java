package io.kvcache.engines.chat;

import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.jlama.JlamaModel;
import io.kvcache.engines.jlama.TextAnswer;
import io.kvcache.engines.jlama.TextRequest;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// One request from its JSON to the end of its answer.
///
/// **Threads.** The one that generates.
final class ChatCompletion {

    private final PrefixCachedGenerator<JlamaModel> generator;
    private final CompletionRequest completionRequest;
    private final CompletionResponses completionResponses;
    private final SseResponder sseResponder;
    private final Runnable firstToken;
    private boolean begun;
    private @Nullable TextAnswer answer;

    /// @param firstToken run when there is a first token, or none comes
    ChatCompletion(
            PrefixCachedGenerator<JlamaModel> generator,
            CompletionRequest completionRequest,
            CompletionResponses completionResponses,
            SseResponder sseResponder,
            Runnable firstToken) {
        this.generator = generator;
        this.completionRequest = completionRequest;
        this.completionResponses = completionResponses;
        this.sseResponder = sseResponder;
        this.firstToken = firstToken;
    }

    /// Makes the answer, and shows it as it comes where that is wanted.
    void generate() throws BadRequestException {
        TextRequest request = new TextRequest(
                prompt(),
                completionRequest.maxTokens(),
                completionRequest.temperature(),
                completionRequest.seed(),
                completionRequest.stops());
        answer = TextAnswer.of(generator, request, more -> {
            signalFirstToken();
            onText(more);
            return sseResponder.isConnected();
        });
        signalFirstToken();
    }

    private void signalFirstToken() {
        if (!begun) {
            begun = true;
            firstToken.run();
        }
    }

    /// Sends the answer, or the end of what was shown.
    void finish() {
        TextAnswer made = Objects.requireNonNull(answer, "nothing was generated");
        String end = made.stopped() ? "stop" : "length";
        CompletionResponses.TokenUsage usage = CompletionResponses.TokenUsage.of(made.generation());
        if (completionRequest.stream()) {
            endStream(end, usage);
        } else {
            sseResponder.send(200, completionResponses.completion(made.text(), end, usage));
        }
    }

    private int[] prompt() throws BadRequestException {
        JlamaModel model = generator.model();
        int[] prompt = completionRequest.chat()
                ? model.encode(completionRequest.messages())
                : model.encode(completionRequest.prompt());
        if (prompt.length >= model.contextLength()) {
            throw new BadRequestException(
                    400,
                    "context_length_exceeded",
                    completionRequest.chat() ? "messages" : "prompt",
                    "the prompt has %d tokens; this model takes up to %d"
                            .formatted(prompt.length, model.contextLength() - 1));
        }
        return prompt;
    }

    /// The stream begins with its first text, so that whatever goes wrong before it can still be said by
    /// a status.
    private void onText(String more) {
        if (completionRequest.stream() && !more.isEmpty()) {
            startStream();
            sseResponder.sendEvent(completionResponses.textChunk(more));
        }
    }

    private void startStream() {
        if (!sseResponder.isStreaming()) {
            sseResponder.startStream();
            if (completionRequest.chat()) {
                sseResponder.sendEvent(completionResponses.firstChunk());
            }
        }
    }

    private void endStream(String end, CompletionResponses.TokenUsage usage) {
        startStream();
        sseResponder.sendEvent(completionResponses.lastChunk(end));
        if (completionRequest.includeUsage()) {
            sseResponder.sendEvent(completionResponses.usageChunk(usage));
        }
        sseResponder.endStream();
    }
}
