package io.kvcache.planner.cli;

import io.kvcache.planner.log.LogImporter;
import io.kvcache.planner.log.TokenizerLoader;
import io.kvcache.planner.log.TokenizerLoader.LogTokenizer;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `kvcache trace`: what makes traces.
@Command(
        name = "trace",
        description = "Make traces to plan with: import logs of requests.",
        mixinStandardHelpOptions = true,
        subcommands = TraceCommand.TraceImportCommand.class)
final class TraceCommand implements Runnable {

    @Mixin
    private final CommandIo io = new CommandIo();

    @Override
    public void run() {
        throw io.usageError("it takes a command, import");
    }

    /// `kvcache trace import`: logs of requests by OpenAI's protocol become a trace of salted hashes.
    @Command(
            name = "import",
            description = "Make a trace of logs with one OpenAI request a line: chats, prompts or token ids."
                    + " Tokens are counted by a model's own tokenizer; only salted hashes of them are written, and the salt"
                    + " is not kept. Nothing is fetched.",
            mixinStandardHelpOptions = true,
            sortOptions = false)
    static final class TraceImportCommand implements Callable<Integer> {

        private static final int SALT_BYTES = 32;

        @Mixin
        private final CommandIo io = new CommandIo();

        @Parameters(
                paramLabel = "LOG",
                arity = "1..*",
                description = "JSON lines: the request itself, or with it as request or body, and perhaps with the"
                        + " response and a timestamp.")
        private List<Path> logs = new ArrayList<>();

        @Option(
                names = "--tokenizer",
                paramLabel = "DIR",
                required = true,
                description = "A model's folder. Reads its tokenizer.json and config.json, and the template in"
                        + " tokenizer_config.json if it has one. Needs no weights.")
        private Path tokenizer = Path.of("");

        @Option(names = "--out", paramLabel = "FILE", required = true, description = "The trace; it is replaced.")
        private Path out = Path.of("");

        @Option(
                names = "--block-tokens",
                paramLabel = "512|16",
                defaultValue = "512",
                description = "Tokens of a block: 512 in Mooncake's format, 16 in Qwen-Bailian's."
                        + " Default: ${DEFAULT-VALUE}.")
        private int blockTokens;

        @Option(
                names = "--malformed",
                paramLabel = "skip|refuse",
                defaultValue = "skip",
                description = "Reaction to a line that cannot be used; each is reported with its reason."
                        + " Default: ${DEFAULT-VALUE}.")
        private String malformed = "";

        @Override
        public Integer call() throws IOException {
            MalformedLine.Handling handling = handling();
            LogTokenizer tokens = loader().load(tokenizer);
            PrintWriter errors = io.err();
            LogImporter reading = new LogImporter(
                    tokens,
                    blockTokens,
                    SecureRandom.getSeed(SALT_BYTES),
                    handling,
                    line -> errors.println("kvcache: skipped " + line));
            for (Path log : logs) {
                reading.read(log);
            }
            LogImporter.ImportResult result = reading.finish(String.valueOf(out.getFileName()));
            LogImporter.writeTrace(result.trace(), out);
            print(result);
            errors.flush();
            return 0;
        }

        private static TokenizerLoader loader() throws IOException {
            return TokenizerLoader.find()
                    .orElseThrow(
                            () -> new IOException(
                                    "trace import needs a tokenizer, and there is none on the class path:"
                                            + " run ./kvcache trace import in a checkout, or add kvcache-engines-cli and its libraries"));
        }

        private MalformedLine.Handling handling() {
            return io.check(() -> {
                if (blockTokens != Trace.BLOCK_TOKENS && blockTokens != LogImporter.SMALL_BLOCK_TOKENS) {
                    throw PlanningOptions.invalidOption("--block-tokens", String.valueOf(blockTokens), "512 or 16");
                }
                checkOut();
                return PlanningOptions.malformed(malformed);
            });
        }

        /// Looks whether the trace can be written before hours are spent on what it holds.
        private void checkOut() {
            Path file = out.toAbsolutePath().normalize();
            Path folder = file.getParent();
            if (folder == null || !Files.isWritable(folder) || Files.isDirectory(file)) {
                throw PlanningOptions.invalidOption(
                        "--out", out.toString(), "a file in a folder that can be written to");
            }
            if (logs.stream().anyMatch(log -> log.toAbsolutePath().normalize().equals(file))) {
                throw PlanningOptions.invalidOption(
                        "--out", out.toString(), "another file than the logs that are read");
            }
        }

        private void print(LogImporter.ImportResult result) {
            Trace.Totals totals = result.trace().totals();
            PrintWriter lines = io.out();
            lines.println(String.format(
                    Locale.ROOT,
                    "%,d requests, %,d lines skipped; %,d tokens in %,d blocks of %d, %,d of them distinct: %s",
                    totals.requests(),
                    result.skipped(),
                    totals.inputTokens(),
                    totals.blockAccesses(),
                    totals.blockTokens(),
                    totals.distinctBlocks(),
                    out));
            if (!Double.isNaN(result.ofLogged())) {
                lines.println(String.format(
                        Locale.ROOT,
                        "Where the logs tell the prompts' tokens, %.3f times as many were counted here.",
                        result.ofLogged()));
            }
            lines.flush();
        }
    }
}
