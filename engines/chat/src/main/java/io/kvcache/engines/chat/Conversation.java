package io.kvcache.engines.chat;

import io.kvcache.engines.jlama.Generation;
import io.kvcache.engines.jlama.GenerationRequest;
import io.kvcache.engines.jlama.JlamaModel;
import io.kvcache.engines.jlama.PrefixCachedGenerator;
import io.kvcache.engines.jlama.TextDecoder;

/// One request from its JSON to the end of its answer.
///
/// **Threads.** The one that generates.
final class Conversation {

    private final PrefixCachedGenerator generator;
    private final Asked asked;
    private final Answers answers;
    private final Reply reply;
    private final StopText stop;
    private final StringBuilder text = new StringBuilder();

    Conversation(PrefixCachedGenerator generator, Asked asked, Answers answers, Reply reply) {
        this.generator = generator;
        this.asked = asked;
        this.answers = answers;
        this.reply = reply;
        stop = new StopText(asked.stops());
    }

    void run() throws BadRequest {
        JlamaModel model = generator.model();
        int[] prompt = asked.chat() ? model.encode(asked.messages()) : model.encode(asked.prompt());
        if (prompt.length >= model.contextLength()) {
            throw new BadRequest(
                    asked.chat() ? "messages" : "prompt",
                    "the prompt has %d tokens; this model takes up to %d"
                            .formatted(prompt.length, model.contextLength() - 1));
        }
        TextDecoder decoder = model.decoder();
        Generation made = generator.generate(
                new GenerationRequest(
                        prompt, asked.mostTokens(), asked.temperature(), asked.seed(), model.stops(), true),
                token -> {
                    show(stop.add(decoder.add(token)));
                    return !stop.found() && reply.wanted();
                });
        show(stop.add(decoder.rest()));
        show(stop.rest());
        finish(made);
    }

    /// The stream begins with its first text, so that whatever goes wrong before it can still be said by
    /// a status.
    private void show(String more) {
        if (asked.stream() && !more.isEmpty()) {
            open();
            reply.piece(answers.piece(more));
        }
        text.append(more);
    }

    private void open() {
        if (!reply.opened()) {
            reply.open();
            if (asked.chat()) {
                reply.piece(answers.opening());
            }
        }
    }

    private void finish(Generation made) {
        String end = stop.found() || made.end() == Generation.End.STOP ? "stop" : "length";
        Answers.Usage usage = Answers.Usage.of(made);
        if (!asked.stream()) {
            reply.whole(200, answers.whole(text.toString(), end, usage));
            return;
        }
        open();
        reply.piece(answers.closing(end));
        if (asked.usage()) {
            reply.piece(answers.usage(usage));
        }
        reply.end();
    }
}
