package io.kvcache.planner.replay;

import io.kvcache.core.policy.ImportanceConfig;
import io.kvcache.core.policy.ImportancePolicy;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.PolicyReplay.PolicyRun;

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
    public String title() {
        return "Importance with " + variant;
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
}
