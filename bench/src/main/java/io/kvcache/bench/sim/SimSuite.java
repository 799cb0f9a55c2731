package io.kvcache.bench.sim;

import java.util.function.LongConsumer;
import java.util.logging.Level;
import java.util.logging.Logger;

/// Runs seeds, each twice, and counts what they have seen.
public final class SimSuite {

    /// Steps of a run when nobody says how many.
    public static final int USUAL_STEPS = 400;

    /// What makes a log line of each fault.
    private static final Logger LOG = Logger.getLogger("io.kvcache.tiers");

    private final int steps;

    /// @param steps of each run
    public SimSuite(int steps) {
        this.steps = steps;
    }

    /// Runs seeds from the first one on.
    ///
    /// @param each hears of each that was clean
    /// @return what they have seen
    /// @throws AssertionError that begins with the command which repeats the seed that failed
    public RareCounts run(long firstSeed, long seeds, LongConsumer each) {
        RareCounts all = new RareCounts();
        Level before = LOG.getLevel();
        LOG.setLevel(Level.OFF);
        try (SimMemory memory = new SimMemory()) {
            for (long seed = firstSeed; seed < firstSeed + seeds; seed++) {
                all.addAll(twice(seed, memory));
                each.accept(seed);
            }
        } finally {
            LOG.setLevel(before);
        }
        return all;
    }

    private RareCounts twice(long seed, SimMemory memory) {
        try {
            RareCounts rare = new RareCounts();
            RareCounts again = new RareCounts();
            String end = Simulation.run(seed, steps, memory, rare) + rare;
            String other = Simulation.run(seed, steps, memory, again) + again;
            Checks.require(
                    end.equals(other), () -> "the same seed ends otherwise the second time:\n" + end + "\n" + other);
            return rare;
        } catch (RuntimeException | AssertionError failed) {
            throw new AssertionError(
                    "seed " + seed + " failed; again: ./kvcache sim --seeds 1 --seed " + seed + " --ticks " + steps
                            + "\n" + failed.getMessage(),
                    failed);
        }
    }
}
