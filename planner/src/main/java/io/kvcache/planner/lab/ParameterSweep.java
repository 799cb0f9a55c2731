package io.kvcache.planner.lab;

import io.kvcache.core.policy.ImportanceConfig;
import io.kvcache.planner.replay.ImportanceReplay;
import io.kvcache.planner.replay.SimulatedCache;
import java.util.ArrayList;
import java.util.List;
import java.util.function.DoubleFunction;

/// Importance with each of its constants halved and doubled: what was fitted would show by a fall.
public final class ParameterSweep {

    private static final double[] FACTORS = {0.5, 2};

    private ParameterSweep() {}

    /// Two replays a constant.
    ///
    /// @param lookAhead how many of the next requests are known
    public static List<SimulatedCache> variants(int lookAhead) {
        ImportanceConfig usual = ImportanceConfig.DEFAULT;
        List<SimulatedCache> all = new ArrayList<>();
        add(all, lookAhead, "half-life", usual.halfLife(), value -> withFactor(usual, 0, value));
        add(all, lookAhead, "ghosts", usual.ghosts(), value -> withFactor(usual, 1, value));
        add(all, lookAhead, "prior-rate", usual.priorRate(), value -> withFactor(usual, 2, value));
        add(all, lookAhead, "prior-events", usual.priorEvents(), value -> withFactor(usual, 3, value));
        add(all, lookAhead, "group-events", usual.groupEvents(), value -> withFactor(usual, 4, value));
        add(all, lookAhead, "class-events", usual.classEvents(), value -> withFactor(usual, 5, value));
        add(all, lookAhead, "label-events", usual.labelEvents(), value -> withFactor(usual, 6, value));
        return all;
    }

    private static void add(
            List<SimulatedCache> all,
            int lookAhead,
            String name,
            double usual,
            DoubleFunction<ImportanceConfig> rules) {
        for (double factor : FACTORS) {
            double value = usual * factor;
            all.add(new ImportanceReplay(name + "=" + value, rules.apply(value), lookAhead));
        }
    }

    private static ImportanceConfig withFactor(ImportanceConfig usual, int index, double value) {
        return new ImportanceConfig(
                index == 0 ? value : usual.halfLife(),
                index == 1 ? value : usual.ghosts(),
                index == 2 ? value : usual.priorRate(),
                index == 3 ? value : usual.priorEvents(),
                index == 4 ? value : usual.groupEvents(),
                index == 5 ? value : usual.classEvents(),
                index == 6 ? value : usual.labelEvents());
    }
}
