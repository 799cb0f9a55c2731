package io.kvcache.bench.sim;

import java.util.NavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;

/// Runs seeds, each twice, and counts what they have seen. Seeds know nothing of each other, so the threads that
/// run them change neither an outcome nor the counts.
public final class SimSuite {

    /// Default number of steps of a run.
    public static final int DEFAULT_STEPS = 400;

    /// The logger that would write a line for each fault.
    private static final Logger LOG = Logger.getLogger("io.kvcache.tiers");

    /// A first seed drawn at random is below this, short enough to be typed.
    private static final long SEED_RANGE = 1_000_000_000;

    /// Seeds that a thread runs over the same native memory, which keeps what any of them took of each size.
    private static final int SEEDS_PER_MEMORY = 50;

    private final int steps;
    private final int threads;
    private final boolean all;

    /// Runs seeds in one thread until one fails.
    ///
    /// @param steps of each run
    public SimSuite(int steps) {
        this(steps, 1, false);
    }

    /// @param steps of each run
    /// @param all whether seeds are run behind one that failed
    public SimSuite(int steps, int threads, boolean all) {
        this.steps = steps;
        this.threads = threads;
        this.all = all;
    }

    /// Hears how far a suite is.
    @FunctionalInterface
    public interface ProgressListener {

        /// A seed has ended.
        ///
        /// @param done seeds by now
        /// @param failed what is wrong, or null
        void onSeedEnded(long done, @Nullable AssertionError failed);
    }

    /// A first seed that no run began with before, as far as chance can do that.
    public static long randomSeed() {
        return ThreadLocalRandom.current().nextLong(1, SEED_RANGE);
    }

    /// Runs seeds from the first one on.
    ///
    /// @param progressListener hears what ended, from one thread at a time
    /// @return what they have seen
    /// @throws AssertionError that begins with the command which repeats the lowest seed that failed; it suppresses
    ///     those of the others
    public CoverageCounters run(long firstSeed, long seeds, ProgressListener progressListener) {
        SeedQueue seedQueue = new SeedQueue(firstSeed, seeds, progressListener);
        Level before = LOG.getLevel();
        LOG.setLevel(Level.OFF);
        try {
            seedQueue.runAll();
        } finally {
            LOG.setLevel(before);
        }
        return seedQueue.outcome();
    }

    /// The seeds of one call, which threads take in their order: so all below one that failed were taken.
    private final class SeedQueue {
        private final long seeds;
        private final long end;
        private final AtomicLong next;
        private final ProgressListener progressListener;
        private final CoverageCounters seen = new CoverageCounters();
        private final NavigableMap<Long, AssertionError> failed = new ConcurrentSkipListMap<>();
        private long done;

        SeedQueue(long firstSeed, long seeds, ProgressListener progressListener) {
            this.seeds = seeds;
            end = firstSeed + seeds;
            this.progressListener = progressListener;
            next = new AtomicLong(firstSeed);
        }

        void runAll() {
            try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
                for (int i = 0; i < threads; i++) {
                    pool.execute(this::runSome);
                }
            }
        }

        private void runSome() {
            boolean more = true;
            while (more) {
                try (SimMemory memory = new SimMemory()) {
                    for (int i = 0; i < SEEDS_PER_MEMORY && more; i++) {
                        more = runNext(memory);
                    }
                }
            }
        }

        private boolean runNext(SimMemory memory) {
            long seed = next.getAndIncrement();
            if (seed >= end
                    || (!all && !failed.isEmpty())
                    || Thread.currentThread().isInterrupted()) {
                return false;
            }
            try {
                ended(runTwice(seed, memory), null);
            } catch (AssertionError wrong) {
                failed.put(seed, wrong);
                ended(new CoverageCounters(), wrong);
            }
            return true;
        }

        private synchronized void ended(CoverageCounters rare, @Nullable AssertionError wrong) {
            seen.addAll(rare);
            progressListener.onSeedEnded(++done, wrong);
        }

        CoverageCounters outcome() {
            if (failed.isEmpty()) {
                SimAssertions.require(done == seeds, () -> "only " + done + " of " + seeds + " seeds were run");
                return seen;
            }
            AssertionError lowest = failed.firstEntry().getValue();
            failed.tailMap(failed.firstKey(), false).values().forEach(lowest::addSuppressed);
            throw lowest;
        }
    }

    private CoverageCounters runTwice(long seed, SimMemory memory) {
        try {
            CoverageCounters rare = new CoverageCounters();
            CoverageCounters again = new CoverageCounters();
            String end = Simulation.run(seed, steps, memory, rare) + rare;
            String other = Simulation.run(seed, steps, memory, again) + again;
            SimAssertions.require(
                    end.equals(other), () -> "the same seed ends otherwise the second time:\n" + end + "\n" + other);
            return rare;
        } catch (Exception | Error failed) {
            throw new AssertionError(
                    "seed " + seed + " failed; again: ./kvcache sim --seeds 1 --seed " + seed + " --ticks " + steps
                            + "\n" + failed.getMessage(),
                    failed);
        }
    }
}
