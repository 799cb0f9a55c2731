package io.kvcache.engines.chat;

import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.jlama.JlamaModel;
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
    private final ThreadPoolExecutor thread;

    Desk(PrefixCachedGenerator<JlamaModel> generator, ChatOptions options) {
        this.generator = generator;
        this.options = options;
        thread = new ThreadPoolExecutor(
                1,
                1,
                0,
                TimeUnit.SECONDS,
                new ArrayBlockingQueue<>(options.mostWaiting()),
                Thread.ofPlatform().name("kvcache-chat").factory());
    }

    String models() {
        return Answers.models(options.model());
    }

    /// What the generator counts, as JSON.
    String stats() {
        return JSON.writeValueAsString(generator.stats());
    }

    /// Answers a request, later; or at once when it is none, or too many wait.
    void take(boolean chat, byte[] body, Reply reply) {
        try {
            Asked asked = Asked.read(chat, body, options.mostTokens());
            Answers answers = new Answers(chat, options.model(), System.currentTimeMillis() / 1000);
            thread.execute(() -> answer(new Conversation(generator, asked, answers, reply), reply));
        } catch (BadRequest bad) {
            refuse(bad, reply);
        } catch (RejectedExecutionException full) {
            reply.whole(
                    429, Answers.error(OURS, "", options.mostWaiting() + " requests wait already; try again later"));
        }
    }

    private static void refuse(BadRequest bad, Reply reply) {
        reply.whole(400, Answers.error("invalid_request_error", bad.field(), String.valueOf(bad.getMessage())));
    }

    private static void answer(Conversation conversation, Reply reply) {
        if (!reply.wanted()) {
            return;
        }
        try {
            conversation.run();
        } catch (BadRequest bad) {
            refuse(bad, reply);
        } catch (RuntimeException failed) {
            LOG.log(Level.ERROR, "an answer could not be made", failed);
            reply.fail(500, Answers.error(OURS, "", "the answer could not be made; the server's log says why"));
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
