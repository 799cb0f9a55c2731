package io.kvcache.engines.chat;

import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.jlama.JlamaModel;
import io.kvcache.engines.jlama.TextAnswer;
import io.kvcache.engines.jlama.TextRequest;

/// One request from its JSON to the end of its answer.
///
/// **Threads.** The one that generates.
final class Conversation {

    private final PrefixCachedGenerator<JlamaModel> generator;
    private final Asked asked;
    private final Answers answers;
    private final Reply reply;

    Conversation(PrefixCachedGenerator<JlamaModel> generator, Asked asked, Answers answers, Reply reply) {
        this.generator = generator;
        this.asked = asked;
        this.answers = answers;
        this.reply = reply;
    }

    void run() throws BadRequest {
        TextRequest request =
                new TextRequest(prompt(), asked.mostTokens(), asked.temperature(), asked.seed(), asked.stops());
        TextAnswer answer = TextAnswer.of(generator, request, more -> {
            show(more);
            return reply.wanted();
        });
        String end = answer.stopped() ? "stop" : "length";
        Answers.Usage usage = Answers.Usage.of(answer.generation());
        if (asked.stream()) {
            close(end, usage);
        } else {
            reply.whole(200, answers.whole(answer.text(), end, usage));
        }
    }

    private int[] prompt() throws BadRequest {
        JlamaModel model = generator.model();
        int[] prompt = asked.chat() ? model.encode(asked.messages()) : model.encode(asked.prompt());
        if (prompt.length >= model.contextLength()) {
            throw new BadRequest(
                    asked.chat() ? "messages" : "prompt",
                    "the prompt has %d tokens; this model takes up to %d"
                            .formatted(prompt.length, model.contextLength() - 1));
        }
        return prompt;
    }

    /// The stream begins with its first text, so that whatever goes wrong before it can still be said by
    /// a status.
    private void show(String more) {
        if (asked.stream() && !more.isEmpty()) {
            open();
            reply.piece(answers.piece(more));
        }
    }

    private void open() {
        if (!reply.opened()) {
            reply.open();
            if (asked.chat()) {
                reply.piece(answers.opening());
            }
        }
    }

    private void close(String end, Answers.Usage usage) {
        open();
        reply.piece(answers.closing(end));
        if (asked.usage()) {
            reply.piece(answers.usage(usage));
        }
        reply.end();
    }
}
