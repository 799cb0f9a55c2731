package io.kvcache.engines.chat;

import io.kvcache.engines.chat.ChatMeters.Outcome;
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
final class Desk implements AutoCloseable {

    private static final Logger LOG = System.getLogger(Desk.class.getName());
    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final String OURS = "server_error";

    private final PrefixCachedGenerator<JlamaModel> generator;
    private final ChatOptions options;
    private final PrometheusMeterRegistry registry;
    private final ChatMeters meters;
    private final ThreadPoolExecutor thread;

    Desk(PrefixCachedGenerator<JlamaModel> generator, ChatOptions options, PrometheusMeterRegistry registry) {
        this.generator = generator;
        this.options = options;
        this.registry = registry;
        thread = new ThreadPoolExecutor(
                1,
                1,
                0,
                TimeUnit.SECONDS,
                new ArrayBlockingQueue<>(options.mostWaiting()),
                Thread.ofPlatform().name("kvcache-chat").factory());
        meters = new ChatMeters(registry, thread.getQueue()::size);
    }

    String models() {
        return Answers.models(options.model());
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
    void take(boolean chat, byte[] body, Reply reply) {
        Request request = new Request(chat ? "/v1/chat/completions" : "/v1/completions", System.nanoTime(), reply);
        try {
            Asked asked = Asked.read(chat, body, options.mostTokens(), options.model());
            Answers answers = new Answers(chat, options.model(), System.currentTimeMillis() / 1000);
            Conversation conversation = new Conversation(generator, asked, answers, reply, request::firstToken);
            thread.execute(() -> request.answer(conversation));
        } catch (BadRequest bad) {
            request.refuse(bad);
        } catch (RejectedExecutionException full) {
            meters.ended(request.path, Outcome.BUSY);
            String message = options.mostWaiting() + " requests wait already; try again later";
            reply.whole(429, Answers.error(OURS, "rate_limit_exceeded", "", message));
        }
    }

    /// A request from when it came; its end is counted before its client can know of it.
    private final class Request {

        private final String path;
        private final long start;
        private final Reply reply;

        Request(String path, long start, Reply reply) {
            this.path = path;
            this.start = start;
            this.reply = reply;
        }

        void firstToken() {
            meters.firstToken(path, System.nanoTime() - start);
        }

        void refuse(BadRequest bad) {
            meters.ended(path, Outcome.REFUSED);
            reply.whole(bad.status(), bad.json());
        }

        void answer(Conversation conversation) {
            if (!reply.wanted()) {
                meters.ended(path, Outcome.GONE);
                return;
            }
            try {
                conversation.generate();
                meters.answered(path, System.nanoTime() - start);
                meters.ended(path, reply.wanted() ? Outcome.OK : Outcome.GONE);
                conversation.end();
            } catch (BadRequest bad) {
                refuse(bad);
            } catch (RuntimeException failed) {
                LOG.log(Level.ERROR, "an answer could not be made", failed);
                meters.ended(path, Outcome.FAILED);
                reply.fail(
                        500,
                        Answers.error(
                                OURS, "internal_error", "", "the answer could not be made; the server's log says why"));
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
