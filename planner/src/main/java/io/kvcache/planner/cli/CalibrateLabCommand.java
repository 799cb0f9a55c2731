package io.kvcache.planner.cli;

import io.kvcache.planner.cli.PlanningOptions.FormatOption;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.serving.EngineCalibration;
import io.kvcache.planner.serving.EngineCalibrator;
import io.kvcache.planner.serving.EngineCalibrator.Measurement;
import io.kvcache.planner.serving.HttpCompletionServer;
import io.kvcache.server.cli.ProgressLine;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `kvcache lab calibrate`: the times of an engine, measured through its server.
@Command(
        name = "calibrate",
        description = "Measure an idle server of OpenAI's protocol with prompts of token ids, some of them cached, and"
                + " fit the times by which --calibrate of lab, lab tiers, lab check and size predict.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class CalibrateLabCommand implements Callable<Integer> {

    private static final int MIN_TOKENS = 64;
    private static final int MAX_TOKENS = 1 << 20;

    /// On two noisy cores, fits had 2 to 9 %, and 61 % beside other requests.
    private static final double MAX_MEDIAN_ERROR = 0.15;

    @Mixin
    private final CommandIo io = new CommandIo();

    @Parameters(paramLabel = "URL", description = "The server: http://HOST:PORT.")
    private String url = "";

    @Option(
            names = "--out",
            paramLabel = "FILE",
            description = "File for the times, which --calibrate takes. Default: they are only printed.")
    private @Nullable Path out;

    @Option(
            names = "--max-prompt",
            paramLabel = "TOKENS",
            defaultValue = "2048",
            description = "Longest prompt, 64 to 1048576, and 16 below the model's context. Default: ${DEFAULT-VALUE}.")
    private int maxPrompt;

    @Option(
            names = "--rounds",
            paramLabel = "N",
            defaultValue = "5",
            description = "How often each prompt is measured, 1 to 1000, after two rounds to warm up."
                    + " Default: ${DEFAULT-VALUE}.")
    private int rounds;

    @Mixin
    private final FormatOption format = new FormatOption();

    @Override
    public Integer call() throws IOException, InterruptedException {
        check();
        EngineCalibrator.Result result;
        try (HttpCompletionServer server = HttpCompletionServer.connect(url);
                ProgressLine progressLine = new ProgressLine(io.err())) {
            result = new EngineCalibrator(server, maxPrompt, progressLine::update)
                    .calibrate(rounds, RandomGenerator.getDefault().nextLong());
        }
        boolean fits = result.calibration().medianError() <= MAX_MEDIAN_ERROR;
        Path file = out;
        if (file != null && fits) {
            result.calibration().write(file);
        }
        RowPrinter printer = new RowPrinter(io, format.format());
        if (printer.isText()) {
            print(result, fits);
        } else {
            printer.print(new ResultRow().putAll(result.calibration()).values());
        }
        if (!fits) {
            io.printError("half of the prompts are further than 15 % from the fit, so nothing is written: is the server"
                    + " idle? More --rounds help against noise");
        }
        return fits ? 0 : 1;
    }

    private void check() {
        io.check(() -> {
            HttpCompletionServer.parse(url);
            if (maxPrompt < MIN_TOKENS || maxPrompt > MAX_TOKENS) {
                throw PlanningOptions.invalidOption(
                        "--max-prompt", String.valueOf(maxPrompt), MIN_TOKENS + " to " + MAX_TOKENS);
            }
            if (rounds < 1 || rounds > 1000) {
                throw PlanningOptions.invalidOption("--rounds", String.valueOf(rounds), "1 to 1000");
            }
            PlanningOptions.checkWritable("--out", out);
            return format.format();
        });
    }

    private void print(EngineCalibrator.Result result, boolean fits) {
        EngineCalibration times = result.calibration();
        io.println(times.model() + " at " + times.server());
        io.println("  prompt  cached   measured     fitted");
        for (Measurement each : result.measurements()) {
            io.println(String.format(
                    Locale.ROOT,
                    "%,8d%,8d %,8.1f ms %,8.1f ms",
                    each.promptTokens(),
                    each.cachedTokens(),
                    1e3 * each.seconds(),
                    1e3 * times.firstTokenSeconds(each.promptTokens(), each.cachedTokens())));
        }
        io.printText(String.format(
                Locale.ROOT,
                "%.2f ms a request, %.1f µs a token and %.2f ns more for each before it, %.2f µs a cached token, %.2f ms"
                        + " between tokens of an answer; blocks of %d tokens. Half of the prompts are closer than %.1f %%.",
                1e3 * times.secondsPerRequest(),
                1e6 * times.secondsPerToken(),
                1e9 * times.secondsPerPair(),
                1e6 * times.secondsPerCachedToken(),
                1e3 * times.secondsPerOutputToken(),
                times.blockTokens(),
                100 * times.medianError()));
        if (out != null && fits) {
            io.printText("Written to " + out + ". Next: ./kvcache lab check " + times.server() + " --calibrate " + out);
        }
    }
}
