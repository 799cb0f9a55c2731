package io.kvcache.planner.replay;

import io.kvcache.core.policy.ImportanceConfig;
import io.kvcache.core.policy.ImportancePolicy;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.PolicyReplay.PolicyRun;
import java.util.ArrayList;
import java.util.List;
import java.util.function.DoubleFunction;

/// Replays against [ImportancePolicy] with other constants than the store's.
///
/// @param variant what is different, for output
/// @param lookAhead how many of the next requests are known
public record ImportanceReplay(String variant, ImportanceConfig rules, int lookAhead) implements SimulatedCache {

    @Override
    public String commandName() {
        return "importance " + variant;
    }

    @Override
    public HitTotals run(PrefixForest forest, int blocks, HitCounter counter) {
        ForestRecords records = new ForestRecords(forest);
        PolicyState state = new PolicyState(records.capacity());
        ImportancePolicy policy = new ImportancePolicy(records, state, rules);
        return new PolicyRun(
                        forest,
                        new PolicyRun.PolicyCache(records, state, policy, blocks),
                        true,
                        PolicyReplay.LookAhead.all(lookAhead))
                .replay(counter);
    }

    private static final double[] FACTORS = {0.5, 2};

    /// Importance with each of its constants halved and doubled, two replays a constant: what was fitted
    /// would show by a fall.
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
