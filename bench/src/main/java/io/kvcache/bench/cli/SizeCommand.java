package io.kvcache.bench.cli;

import io.kvcache.bench.lab.LruCurve;
import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.ReplayRule;
import io.kvcache.bench.replay.TraceForest;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceSource;
import io.kvcache.core.identity.ModelPreset;
import io.kvcache.core.policy.PolicyKind;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `kvcache size`: how much memory a hit ratio takes, under LRU and under importance.
@Command(
        name = "size",
        description = "How much memory a hit ratio takes on a trace; exits with 1 when no memory would do.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class SizeCommand implements Callable<Integer> {

    /// Importance's capacity is found to within one in so many.
    private static final int PRECISION = 64;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private final TraceOption trace = new TraceOption();

    @Option(
            names = "--model",
            paramLabel = "NAME",
            defaultValue = "llama-3-8b",
            description = "Whose KV the bytes are: llama-3-8b, llama-3-70b, qwen3-32b, deepseek-v3."
                    + " Default: ${DEFAULT-VALUE}.")
    private String model = "";

    @Option(
            names = "--target-hit",
            paramLabel = "RATIO",
            required = true,
            description = "Block hit ratio that is wanted, above 0 to 1.")
    private double target;

    @Override
    public Integer call() throws IOException {
        ModelPreset preset = preset();
        Trace read = TraceOption.load(source());
        PrintWriter out = spec.commandLine().getOut();
        TraceForest forest = new TraceForest(read, ReplayRule.FULL_BLOCKS);
        LruCurve curve = new LruCurve(forest, 0);
        int lru = curve.blocksFor(target);
        if (lru < 0) {
            print(
                    out,
                    String.format(
                            Locale.ROOT,
                            "%s cannot reach %.4f: with memory for everything, %.4f of its full blocks are found.",
                            read.name(),
                            target,
                            curve.ceiling()));
            return 1;
        }
        print(
                out,
                String.format(
                        Locale.ROOT,
                        "%s: %.4f of the full blocks found (at most %.4f)",
                        read.name(),
                        target,
                        curve.ceiling()));
        line(out, read, preset, "lru", lru);
        line(out, read, preset, "importance", importance(forest));
        if (curve.hitRatio(forest.nodes() / 2) < 0.98 * curve.ceiling()) {
            print(out, "Half of all blocks gets less than 98 % of the hits: a longer trace would show more reuse.");
        }
        return 0;
    }

    private int importance(TraceForest forest) {
        PolicyReplay replay = new PolicyReplay(PolicyKind.IMPORTANCE);
        int low = 0;
        int high = forest.nodes();
        while (high - low > Math.max(1, high / PRECISION)) {
            int middle = (low + high) >>> 1;
            if (replay.run(forest, middle, 0).blockHitRatio() >= target) {
                high = middle;
            } else {
                low = middle;
            }
        }
        return high;
    }

    private static void line(PrintWriter out, Trace read, ModelPreset preset, String policy, int blocks) {
        String bytes = new ByteSize(blocks * read.blockBytes(preset)).toString();
        print(
                out,
                String.format(
                        Locale.ROOT,
                        "  %-10s  %,9d blocks of %d tokens  %s of %s",
                        policy,
                        blocks,
                        read.blockTokens(),
                        bytes,
                        preset.label()));
    }

    private static void print(PrintWriter out, String line) {
        out.println(line);
        out.flush();
    }

    private ModelPreset preset() {
        try {
            if (!(target > 0 && target <= 1)) {
                throw ReplayChoices.mustBe("--target-hit", String.valueOf(target), "above 0 to 1");
            }
            return ReplayChoices.model(model, true).orElseThrow();
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "kvcache size: " + e.getMessage(), e);
        }
    }

    private TraceSource source() {
        try {
            return trace.source();
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "kvcache size: " + e.getMessage(), e);
        }
    }
}
