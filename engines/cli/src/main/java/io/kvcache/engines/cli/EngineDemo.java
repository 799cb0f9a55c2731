package io.kvcache.engines.cli;

import io.kvcache.core.KvCache;
import io.kvcache.engines.generator.Generation;
import io.kvcache.engines.generator.GenerationRequest;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.tiers.TieredKvCache;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;
import tools.jackson.databind.json.JsonMapper;

/// An inference engine in this JVM, each request asked with the store and without: 20 questions under one
/// system prompt, and a chat of 6 turns, each of which goes on from the answer before it.
final class EngineDemo {

    private static final int QUESTIONS = 20;
    private static final int TURNS = 6;
    private static final int ANSWER_TOKENS = 24;
    private static final int BLOCK_TOKENS = 16;
    private static final long HOST_BYTES = 512L << 20;
    private static final Duration STORE_TIMEOUT = Duration.ofSeconds(60);

    private static final String SYSTEM_PROMPT =
            "You are the assistant of a small library. Answer in two or three plain sentences,"
                    + " name the shelf where a book stands, and say so when you do not know. Books are lent for four weeks and may"
                    + " be kept for four more, unless somebody else waits for them. New readers need a card, which costs nothing and"
                    + " takes a minute. The library is open from ten to seven on weekdays and until four on Saturdays. Children may"
                    + " borrow ten books, grown-ups twenty. Films are lent for a week. The reading room is quiet; the cafe is not.";

    private static final List<String> TOPICS = List.of("maps", "birds", "poems", "tides", "bread");

    private final TextEngine engine;
    private final Consumer<Row> listener;

    /// @param engine stays the caller's
    /// @param listener told of each request as it is done
    public EngineDemo(TextEngine engine, Consumer<Row> listener) {
        this.engine = engine;
        this.listener = listener;
    }

    /// One request, asked in both ways.
    ///
    /// @param name what it is
    /// @param promptTokens of the prompt
    /// @param cachedTokens of those, from the store
    /// @param withMillis to the first token, with the store
    /// @param withoutMillis the same without
    /// @param equal whether both answers are of the same tokens
    public record Row(
            String name, int promptTokens, int cachedTokens, double withMillis, double withoutMillis, boolean equal) {}

    /// All of them.
    ///
    /// @param model its name, and what computed it
    public record Result(String model, List<Row> rows) {

        public Result {
            rows = List.copyOf(rows);
        }

        /// Returns whether all tokens are equal and the store had hits.
        public boolean isPassed() {
            return rows.stream().allMatch(Row::equal) && rows.stream().anyMatch(row -> row.cachedTokens() > 0);
        }

        public long promptTokens() {
            return rows.stream().mapToLong(Row::promptTokens).sum();
        }

        public long savedTokens() {
            return rows.stream().mapToLong(Row::cachedTokens).sum();
        }

        public double withMillis() {
            return rows.stream().mapToDouble(Row::withMillis).sum();
        }

        public double withoutMillis() {
            return rows.stream().mapToDouble(Row::withoutMillis).sum();
        }
    }

    /// Runs all of it.
    public Result run() throws InterruptedException {
        List<Row> rows = new ArrayList<>();
        try (KvCache cache = TieredKvCache.builder().hostBytes(HOST_BYTES).build();
                PrefixCachedGenerator<?> generator = new PrefixCachedGenerator<>(
                        engine.model(), cache, GeneratorOptions.DEFAULTS.withBlockTokens(BLOCK_TOKENS))) {
            // What the JVM has still to compile would count to the first request.
            generator.generate(
                    GenerationRequest.greedy(engine.model().encode(SYSTEM_PROMPT), ANSWER_TOKENS)
                            .uncached(),
                    _ -> true);
            for (int i = 0; i < QUESTIONS; i++) {
                String question = "\nReader " + (i + 1) + ": do you have a book about " + TOPICS.get(i % TOPICS.size())
                        + "?\nYou: ";
                ask(generator, "question " + (i + 1), engine.model().encode(SYSTEM_PROMPT + question), rows);
            }
            int[] chat = engine.model().encode("A chat about the sea.");
            for (int turn = 1; turn <= TURNS; turn++) {
                chat = concatenate(
                        chat,
                        engine.model()
                                .encodeContinuation(
                                        "\nReader: and what comes after that, please, in turn " + turn + "?\nYou: "));
                chat = concatenate(chat, ask(generator, "turn " + turn, chat, rows));
            }
        }
        return new Result(engine.describe(), rows);
    }

    private int[] ask(PrefixCachedGenerator<?> generator, String name, int[] prompt, List<Row> rows)
            throws InterruptedException {
        GenerationRequest request = GenerationRequest.greedy(prompt, ANSWER_TOKENS);
        boolean storeFirst = rows.size() % 2 == 0;
        Generation one = generator.generate(storeFirst ? request : request.uncached(), _ -> true);
        await(generator);
        Generation two = generator.generate(storeFirst ? request.uncached() : request, _ -> true);
        await(generator);
        Generation with = storeFirst ? one : two;
        Generation without = storeFirst ? two : one;
        Row row = new Row(
                name,
                prompt.length,
                with.cachedTokens(),
                with.timings().firstTokenNanos() / 1e6,
                without.timings().firstTokenNanos() / 1e6,
                Arrays.equals(with.tokens(), without.tokens()));
        rows.add(row);
        listener.accept(row);
        return with.tokens();
    }

    private static void await(PrefixCachedGenerator<?> generator) throws InterruptedException {
        if (!generator.awaitStored(STORE_TIMEOUT)) {
            throw new IllegalStateException("blocks were still being stored after " + STORE_TIMEOUT);
        }
    }

    private static int[] concatenate(int[] first, int[] second) {
        int[] all = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, all, first.length, second.length);
        return all;
    }

    /// The output of `kvcache engines demo`: a line a request as it ends, then the totals; or one JSON object.
    record EngineDemoReport(PrintWriter out, boolean json) {

        /// Runs the demo.
        ///
        /// @param engine stays the caller's
        /// @return 0 when all answers were equal and the store had something to give, else 1
        int show(EngineKind kind, TextEngine engine) throws InterruptedException {
            if (!json) {
                line(kind.title()
                        + " in this JVM, each request with the store and without; milliseconds to the first token");
                line("");
                line(String.format(Locale.ROOT, "%-14s %7s %7s %10s %10s", "", "tokens", "cached", "with", "without"));
            }
            EngineDemo.Result result = new EngineDemo(engine, this::row).run();
            if (json) {
                line(JsonMapper.builder().build().writeValueAsString(result));
            } else {
                summary(result);
            }
            return result.isPassed() ? 0 : 1;
        }

        private void row(EngineDemo.Row row) {
            if (!json) {
                line(String.format(
                        Locale.ROOT,
                        "%-14s %7d %7d %10.1f %10.1f%s",
                        row.name(),
                        row.promptTokens(),
                        row.cachedTokens(),
                        row.withMillis(),
                        row.withoutMillis(),
                        row.equal() ? "" : "  ANOTHER ANSWER"));
            }
        }

        private void summary(EngineDemo.Result result) {
            long different = result.rows().stream().filter(row -> !row.equal()).count();
            line("");
            line(String.format(
                    Locale.ROOT,
                    "%,d of %,d prompt tokens came from the store: %,.0f ms to all first tokens in place of %,.0f",
                    result.savedTokens(),
                    result.promptTokens(),
                    result.withMillis(),
                    result.withoutMillis()));
            line(
                    different == 0
                            ? "All answers are of the same tokens with the store and without."
                            : different + " answers are of other tokens with the store than without.");
            line("Model: " + result.model());
        }

        private void line(String text) {
            out.println(text);
            out.flush();
        }
    }
}
