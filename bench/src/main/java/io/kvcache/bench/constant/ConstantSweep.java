package io.kvcache.bench.constant;

import io.kvcache.bench.constant.TunableConstant.Effect;
import io.kvcache.bench.lab.PolicyRegressionCheck;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.IntStream;

/// Halves and doubles constants of the core, one at a time, and says what that changes on a trace.
///
/// The order of eviction is judged by block hits at the six shares of [PolicyRegressionCheck], with the next 64
/// requests known where that is what the constant is about. What is written is judged in the store,
/// with host memory for 2 % of the blocks and a disk for 10 %: the mean of three runs is what each
/// is compared with, as runs of a store with threads differ.
public final class ConstantSweep {

    private static final double[] FACTORS = {0.5, 2};
    private static final int QUEUE = 64;
    private static final int RUNS = 3;
    private static final double[] SHARES =
            PolicyRegressionCheck.SHARES.stream().mapToDouble(share -> share).toArray();

    private final String trace;
    private final int first;
    private final Path sources;
    private final Map<Effect, double[]> baselines = new HashMap<>();

    /// @param trace as `--trace` names it
    /// @param first so many of its requests
    /// @param sources the folder of the core's main sources
    public ConstantSweep(String trace, int first, Path sources) {
        this.trace = trace;
        this.first = first;
        this.sources = sources;
    }

    /// Half and twice of one.
    ///
    /// @throws IOException when the trace or the sources are not there, or there is no compiler
    public List<ConstantSweepRow> rows(TunableConstant constant) throws IOException {
        String value = constant.valueIn(PatchedCoreLoader.readSource(sources, constant));
        double[] before = baseline(constant.effect());
        ConstantSweepRow[] rows = new ConstantSweepRow[FACTORS.length];
        for (int i = 0; i < rows.length; i++) {
            try (PatchedCoreLoader core = PatchedCoreLoader.compileWith(sources, constant, FACTORS[i])) {
                rows[i] = row(constant, value, FACTORS[i], before, changed(core, constant.effect()));
            }
        }
        return List.of(rows);
    }

    private double[] baseline(Effect effect) throws IOException {
        double[] known = baselines.get(effect);
        if (known == null) {
            known = measured(effect);
            baselines.put(effect, known);
        }
        return known;
    }

    private double[] measured(Effect effect) throws IOException {
        if (effect != Effect.WRITING) {
            return ConstantExperiment.hits(trace, first, effect == Effect.QUEUE ? QUEUE : 0, SHARES);
        }
        double[] sum = new double[3];
        for (int run = 0; run < RUNS; run++) {
            double[] one = ConstantExperiment.writing(trace, first);
            Arrays.setAll(sum, i -> sum[i] + one[i] / RUNS);
        }
        return sum;
    }

    private double[] changed(PatchedCoreLoader core, Effect effect) throws IOException {
        return (double[])
                (effect == Effect.WRITING
                        ? core.callStatic(
                                ConstantExperiment.class, "writing", List.of(String.class, int.class), trace, first)
                        : core.callStatic(
                                ConstantExperiment.class,
                                "hits",
                                List.of(String.class, int.class, int.class, double[].class),
                                trace,
                                first,
                                effect == Effect.QUEUE ? QUEUE : 0,
                                SHARES));
    }

    private ConstantSweepRow row(
            TunableConstant constant, String value, double factor, double[] before, double[] after) {
        boolean writing = constant.effect() == Effect.WRITING;
        double[] gained = IntStream.range(0, writing ? 1 : before.length)
                .mapToDouble(i -> 100 * (after[i] - before[i]))
                .toArray();
        return new ConstantSweepRow(
                constant.label(),
                value,
                factor,
                constant.effect().name().toLowerCase(Locale.ROOT),
                trace,
                Arrays.stream(gained).average().orElse(0),
                Arrays.stream(gained).min().orElse(0),
                Arrays.stream(gained).max().orElse(0),
                writing && before[1] > 0 ? after[1] / before[1] - 1 : 0,
                writing ? 100 * (after[2] - before[2]) : 0);
    }
}
