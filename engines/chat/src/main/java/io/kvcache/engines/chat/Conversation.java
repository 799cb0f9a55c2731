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
final class Conversation {

    private final PrefixCachedGenerator<JlamaModel> generator;
    private final Asked asked;
    private final Answers answers;
    private final Reply reply;
    private final Runnable firstToken;
    private boolean begun;
    private @Nullable TextAnswer answer;

    /// @param firstToken run when there is a first token, or none comes
    Conversation(
            PrefixCachedGenerator<JlamaModel> generator,
            Asked asked,
            Answers answers,
            Reply reply,
            Runnable firstToken) {
        this.generator = generator;
        this.asked = asked;
        this.answers = answers;
        this.reply = reply;
        this.firstToken = firstToken;
    }

    /// Makes the answer, and shows it as it comes where that is wanted.
    void generate() throws BadRequest {
        TextRequest request =
                new TextRequest(prompt(), asked.mostTokens(), asked.temperature(), asked.seed(), asked.stops());
        answer = TextAnswer.of(generator, request, more -> {
            begin();
            show(more);
            return reply.wanted();
        });
        begin();
    }

    private void begin() {
        if (!begun) {
            begun = true;
            firstToken.run();
        }
    }

    /// Sends the answer, or the end of what was shown.
    void end() {
        TextAnswer made = Objects.requireNonNull(answer, "nothing was generated");
        String end = made.stopped() ? "stop" : "length";
        Answers.Usage usage = Answers.Usage.of(made.generation());
        if (asked.stream()) {
            close(end, usage);
        } else {
            reply.whole(200, answers.whole(made.text(), end, usage));
        }
    }

    private int[] prompt() throws BadRequest {
        JlamaModel model = generator.model();
        int[] prompt = asked.chat() ? model.encode(asked.messages()) : model.encode(asked.prompt());
        if (prompt.length >= model.contextLength()) {
            throw new BadRequest(
                    400,
                    "context_length_exceeded",
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
