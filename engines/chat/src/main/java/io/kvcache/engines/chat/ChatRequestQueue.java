package io.kvcache.engines.chat;

import io.kvcache.engines.chat.ChatMetrics.Outcome;
import io.kvcache.engines.chat.CompletionRequest.BadRequestException;
import io.kvcache.engines.chat.CompletionRequest.CompletionPrompt;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.generator.TextAnswer;
import io.kvcache.engines.generator.TextAnswer.TextRequest;
import io.kvcache.engines.generator.TextModel;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import tools.jackson.databind.json.JsonMapper;

/// Takes requests and has them answered one after the other, as the model takes one at a time.
///
/// **Threads.** Any; answers are made on a thread of its own.
final class ChatRequestQueue implements AutoCloseable {

    private static final Logger LOG = System.getLogger(ChatRequestQueue.class.getName());
    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final String SERVER_ERROR = "server_error";

    private final PrefixCachedGenerator<? extends TextModel> generator;
    private final ChatOptions options;
    private final PrometheusMeterRegistry registry;
    private final ChatMetrics meters;
    private final ThreadPoolExecutor thread;

    ChatRequestQueue(
            PrefixCachedGenerator<? extends TextModel> generator,
            ChatOptions options,
            PrometheusMeterRegistry registry) {
        this.generator = generator;
        this.options = options;
        this.registry = registry;
        thread = new ThreadPoolExecutor(
                1,
                1,
                0,
                TimeUnit.SECONDS,
                new ArrayBlockingQueue<>(options.maxWaiting()),
                Thread.ofPlatform().name("kvcache-chat").factory());
        meters = new ChatMetrics(registry, thread.getQueue()::size);
    }

    String models() {
        return CompletionResponses.models(options.model());
    }

    /// Returns the generator's counters as JSON.
    String stats() {
        return JSON.writeValueAsString(generator.stats());
    }

    /// All meters, as Prometheus reads them.
    String metrics() {
        return registry.scrape();
    }

    /// Answers a request, later; or at once when it is none, or too many wait.
    void submit(boolean chat, byte[] body, SseResponder responder) {
        long start = System.nanoTime();
        String path = chat ? "/v1/chat/completions" : "/v1/completions";
        try {
            CompletionRequest request = CompletionRequest.parse(chat, body, options.maxTokens(), options.model());
            thread.execute(new ChatCompletion(path, start, request, responder)::answer);
        } catch (BadRequestException bad) {
            refuse(path, bad, responder);
        } catch (RejectedExecutionException full) {
            meters.recordOutcome(path, Outcome.BUSY);
            String message = options.maxWaiting() + " requests wait already; try again later";
            responder.send(429, CompletionResponses.error(SERVER_ERROR, "rate_limit_exceeded", "", message));
        }
    }

    private void refuse(String path, BadRequestException bad, SseResponder responder) {
        meters.recordOutcome(path, Outcome.REFUSED);
        responder.send(bad.status(), bad.json());
    }

    /// Ends what is being answered, and answers nothing more.
    @Override
    public void close() {
        thread.shutdownNow();
        try {
            if (!thread.awaitTermination(30, TimeUnit.SECONDS)) {
                LOG.log(Level.WARNING, "an answer was still being made after 30 s");
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    /// One request from its JSON to the end of its answer. Its end is counted before its client can know of it.
    ///
    /// **Threads.** The one that generates.
    private final class ChatCompletion {

        private final String path;
        private final long start;
        private final CompletionRequest request;
        private final CompletionResponses responses;
        private final SseResponder responder;
        private boolean begun;

        /// @param start when the request came, by [System#nanoTime]
        ChatCompletion(String path, long start, CompletionRequest request, SseResponder responder) {
            this.path = path;
            this.start = start;
            this.request = request;
            this.responder = responder;
            responses = new CompletionResponses(request.chat(), options.model(), System.currentTimeMillis() / 1000);
        }

        void answer() {
            if (!responder.isConnected()) {
                meters.recordOutcome(path, Outcome.GONE);
                return;
            }
            try {
                TextAnswer made = generate();
                meters.recordLatency(path, System.nanoTime() - start);
                meters.recordOutcome(path, responder.isConnected() ? Outcome.OK : Outcome.GONE);
                finish(made);
            } catch (BadRequestException bad) {
                refuse(path, bad, responder);
            } catch (RuntimeException failed) {
                LOG.log(Level.ERROR, "an answer could not be made", failed);
                meters.recordOutcome(path, Outcome.FAILED);
                responder.fail(
                        500,
                        CompletionResponses.error(
                                SERVER_ERROR,
                                "internal_error",
                                "",
                                "the answer could not be made; the server's log says why"));
            }
        }

        /// Makes the answer, and shows it as it comes where that is wanted.
        private TextAnswer generate() throws BadRequestException {
            TextRequest text = new TextRequest(
                    prompt(), request.maxTokens(), request.temperature(), request.seed(), request.stops());
            TextAnswer made = TextAnswer.of(generator, text, more -> {
                signalFirstToken();
                onText(more);
                return responder.isConnected();
            });
            signalFirstToken();
            return made;
        }

        private void signalFirstToken() {
            if (!begun) {
                begun = true;
                meters.recordFirstToken(path, System.nanoTime() - start);
            }
        }

        /// Sends the answer, or the end of what was shown.
        private void finish(TextAnswer made) {
            String end = made.stopped() ? "stop" : "length";
            CompletionResponses.TokenUsage usage = CompletionResponses.TokenUsage.of(made.generation());
            if (request.stream()) {
                endStream(end, usage);
            } else {
                responder.send(200, responses.completion(made.text(), end, usage));
            }
        }

        private int[] prompt() throws BadRequestException {
            TextModel model = generator.model();
            int[] prompt = request.chat() ? chatPrompt(model) : prompt(model);
            if (prompt.length >= model.contextLength()) {
                throw new BadRequestException(
                        400,
                        "context_length_exceeded",
                        request.chat() ? "messages" : "prompt",
                        "the prompt has %s tokens; this model takes up to %s"
                                .formatted(prompt.length, model.contextLength() - 1));
            }
            return prompt;
        }

        private int[] chatPrompt(TextModel model) throws BadRequestException {
            try {
                return model.encode(request.messages());
            } catch (IllegalArgumentException | IllegalStateException refused) {
                throw BadRequestException.invalidValue("messages", String.valueOf(refused.getMessage()));
            }
        }

        private int[] prompt(TextModel model) throws BadRequestException {
            return switch (request.prompt()) {
                case CompletionPrompt.Text text -> model.encode(text.text());
                case CompletionPrompt.Tokens given -> {
                    int[] tokens = given.tokens();
                    for (int i = 0; i < tokens.length; i++) {
                        if (tokens[i] < 0 || tokens[i] >= model.vocabulary()) {
                            throw BadRequestException.invalidValue(
                                    "prompt",
                                    "element %s of prompt is %s; tokens of this model are 0 to %s"
                                            .formatted(i, tokens[i], model.vocabulary() - 1));
                        }
                    }
                    yield tokens;
                }
            };
        }

        /// The stream begins with the first token, even where its text is not whole yet: until then, what goes
        /// wrong can still be said by a status, and clients see when that token came.
        private void onText(String more) {
            if (request.stream() && !(more.isEmpty() && responder.isStreaming())) {
                startStream();
                responder.sendEvent(responses.textChunk(more));
            }
        }

        private void startStream() {
            if (!responder.isStreaming()) {
                responder.startStream();
                if (request.chat()) {
                    responder.sendEvent(responses.firstChunk());
                }
            }
        }

        private void endStream(String end, CompletionResponses.TokenUsage usage) {
            startStream();
            responder.sendEvent(responses.lastChunk(end));
            if (request.includeUsage()) {
                responder.sendEvent(responses.usageChunk(usage));
            }
            responder.endStream();
        }
    }
}
