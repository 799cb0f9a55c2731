package io.kvcache.engines.chat;

import io.kvcache.engines.chat.ChatMetrics.Outcome;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.jlama.JlamaModel;
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

    private final PrefixCachedGenerator<JlamaModel> generator;
    private final ChatOptions options;
    private final PrometheusMeterRegistry registry;
    private final ChatMetrics meters;
    private final ThreadPoolExecutor thread;

    ChatRequestQueue(
            PrefixCachedGenerator<JlamaModel> generator, ChatOptions options, PrometheusMeterRegistry registry) {
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

    /// What the generator counts, as JSON.
    String stats() {
        return JSON.writeValueAsString(generator.stats());
    }

    /// All meters, as Prometheus reads them.
    String metrics() {
        return registry.scrape();
    }

    /// Answers a request, later; or at once when it is none, or too many wait.
    void submit(boolean chat, byte[] body, SseResponder sseResponder) {
        TimedRequest request =
                new TimedRequest(chat ? "/v1/chat/completions" : "/v1/completions", System.nanoTime(), sseResponder);
        try {
            CompletionRequest completionRequest =
                    CompletionRequest.parse(chat, body, options.maxTokens(), options.model());
            CompletionResponses completionResponses =
                    new CompletionResponses(chat, options.model(), System.currentTimeMillis() / 1000);
            ChatCompletion chatCompletion = new ChatCompletion(
                    generator, completionRequest, completionResponses, sseResponder, request::firstToken);
            thread.execute(() -> request.answer(chatCompletion));
        } catch (BadRequestException bad) {
            request.refuse(bad);
        } catch (RejectedExecutionException full) {
            meters.recordOutcome(request.path, Outcome.BUSY);
            String message = options.maxWaiting() + " requests wait already; try again later";
            sseResponder.send(429, CompletionResponses.error(SERVER_ERROR, "rate_limit_exceeded", "", message));
        }
    }

    /// A request from when it came; its end is counted before its client can know of it.
    private final class TimedRequest {

        private final String path;
        private final long start;
        private final SseResponder sseResponder;

        TimedRequest(String path, long start, SseResponder sseResponder) {
            this.path = path;
            this.start = start;
            this.sseResponder = sseResponder;
        }

        void firstToken() {
            meters.recordFirstToken(path, System.nanoTime() - start);
        }

        void refuse(BadRequestException bad) {
            meters.recordOutcome(path, Outcome.REFUSED);
            sseResponder.send(bad.status(), bad.json());
        }

        void answer(ChatCompletion chatCompletion) {
            if (!sseResponder.isConnected()) {
                meters.recordOutcome(path, Outcome.GONE);
                return;
            }
            try {
                chatCompletion.generate();
                meters.recordLatency(path, System.nanoTime() - start);
                meters.recordOutcome(path, sseResponder.isConnected() ? Outcome.OK : Outcome.GONE);
                chatCompletion.finish();
            } catch (BadRequestException bad) {
                refuse(bad);
            } catch (RuntimeException failed) {
                LOG.log(Level.ERROR, "an answer could not be made", failed);
                meters.recordOutcome(path, Outcome.FAILED);
                sseResponder.fail(
                        500,
                        CompletionResponses.error(
                                SERVER_ERROR,
                                "internal_error",
                                "",
                                "the answer could not be made; the server's log says why"));
            }
        }
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
}
