package io.kvcache.engines.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Optional;
import tools.jackson.databind.json.JsonMapper;

/// What `kvcache engines demo` shows: a line a request as it is done, then what it comes to; or one JSON
/// object.
record EngineDemoReport(PrintWriter out, boolean json) {

    /// Runs the demo.
    ///
    /// @param kind of engine
    /// @param model its directory, else one of random weights is made
    /// @param library the engine's, else the one of the class path
    /// @return 0 when all answers were equal and the store had something to give, else 1
    int show(EngineKind kind, Optional<Path> model, Optional<Path> library) throws IOException, InterruptedException {
        try (TextEngine engine = kind.open(model, library)) {
            return show(kind, engine);
        }
    }

    private int show(EngineKind kind, TextEngine engine) throws InterruptedException {
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
