package io.kvcache.bench.sim;

import io.kvcache.core.baseline.Baseline;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// The first 200 seeds of `./kvcache sim` end as they were recorded: every key, counter and moment.
@Tag(Baseline.TAG)
final class SimulationBaselineTest {

    private static final int SEEDS = 200;

    @Test
    void givenRecordedSeeds_whenRun_thenTheyEndTheSame() {
        Logger log = Logger.getLogger("io.kvcache.tiers");
        log.setLevel(Level.OFF); // each fault makes a line
        List<String> ends = new ArrayList<>();
        try (SimMemory memory = new SimMemory()) {
            for (long seed = 1; seed <= SEEDS; seed++) {
                CoverageCounters rare = new CoverageCounters();
                String end = Simulation.run(seed, SimSuite.DEFAULT_STEPS, memory, rare);
                String last = end.substring(end.lastIndexOf('\n') + 1);
                ends.add(seed + " " + Baseline.digest(end + rare) + " " + last);
            }
        } finally {
            log.setLevel(null);
        }
        Baseline.compare(SimulationBaselineTest.class, "sim.txt", ends);
    }
}
