package io.kvcache.bench.cli;

import io.kvcache.bench.sim.CoverageCounters;
import io.kvcache.bench.sim.SimSuite;
import io.kvcache.planner.cli.CommandIo;
import io.kvcache.planner.cli.PlacementSimRunner;
import io.kvcache.server.cli.ProgressLine;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `kvcache sim`: the store over disks that fail, in virtual time, seed by seed; or blocks over several nodes.
@Command(
        name = "sim",
        description =
                "Run the store over disks that fail and crash, in virtual time, and check every byte and promise. With"
                        + " --placement, replay a trace over nodes that own its blocks instead.",
        footer = {
            "",
            "Seeds do not depend on each other. Repeat one alone with --seed S --seeds 1 and the same --ticks.",
            "Exit code: 0 if all seeds are clean; 1 if one is not, and the command that repeats it is printed.",
            "--placement takes none of the options of seeds. Its output is the same each time.",
            "From a checkout, sim --cluster [--seeds N] [--first S] runs a simulated cluster, each seed twice."
        },
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class SimCommand implements Callable<Integer> {

    private static final long REPORT_INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(10);

    private static final List<String> SEED_OPTIONS = List.of("--seeds", "--seed", "--ticks", "--threads", "--all");

    @Mixin
    private final CommandIo io = new CommandIo();

    @Option(
            names = "--seeds",
            paramLabel = "N",
            defaultValue = "100",
            description = "Seeds. Default: ${DEFAULT-VALUE}.")
    private long seeds;

    @Option(
            names = "--seed",
            paramLabel = "S",
            description = "First seed. Default: another each time, which is printed.")
    private @Nullable Long first;

    @Option(
            names = "--ticks",
            paramLabel = "T",
            defaultValue = "" + SimSuite.DEFAULT_STEPS,
            description = "Steps of each run. Default: ${DEFAULT-VALUE}.")
    private int steps;

    @Option(
            names = "--threads",
            paramLabel = "N",
            description =
                    "Seeds to run at once, each with its own store. Default: the processors. The outcomes are the same.")
    private int threads = Runtime.getRuntime().availableProcessors();

    @Option(names = "--all", description = "Continue after a seed that failed, and name every one that does.")
    private boolean all;

    @ArgGroup(exclusive = false)
    private @Nullable PlacementSimRunner placement;

    private void requirePositive(String option, long value) {
        if (value < 1) {
            throw io.usageError(option + " is " + value + "; it takes 1 and up");
        }
    }

    @Override
    public Integer call() throws IOException {
        PlacementSimRunner placed = placement;
        if (placed != null) {
            for (String option : SEED_OPTIONS) {
                if (io.isGiven(option)) {
                    throw io.usageError("--placement does not take " + option);
                }
            }
            return placed.run(io);
        }
        return runSeeds();
    }

    private int runSeeds() {
        requirePositive("--seeds", seeds);
        requirePositive("--ticks", steps);
        requirePositive("--threads", threads);
        // The store's classes are not loaded yet.
        ClassLoader.getSystemClassLoader().setPackageAssertionStatus("io.kvcache", true);
        long from = first == null ? SimSuite.randomSeed() : first;
        PrintWriter out = io.out();
        PrintWriter err = io.err();
        out.printf(Locale.ROOT, "%d seeds from %d on, each twice, %d steps%n", seeds, from, steps);
        out.flush();
        long start = System.nanoTime();
        try (ProgressLine progressLine = new ProgressLine(err)) {
            CoverageCounters seen =
                    new SimSuite(steps, threads, all).run(from, seeds, new ProgressPrinter(progressLine, err, start));
            progressLine.update("");
            seen.all().forEach((what, count) -> out.printf(Locale.ROOT, "%12d  %s%n", count, what));
            out.printf(
                    Locale.ROOT,
                    "%d seeds from %d on, each twice, %d steps: clean, in %.0f s%n",
                    seeds,
                    from,
                    steps,
                    seconds(start));
            out.flush();
            return 0;
        } catch (AssertionError failed) {
            print(failed, err);
            for (Throwable other : failed.getSuppressed()) {
                print(other, err);
            }
            err.printf(
                    Locale.ROOT, "%d of %d seeds from %d on failed%n", 1 + failed.getSuppressed().length, seeds, from);
            err.flush();
            return 1;
        }
    }

    private static double seconds(long start) {
        return (System.nanoTime() - start) / 1e9;
    }

    private static void print(Throwable failed, PrintWriter err) {
        err.println(failed.getMessage());
        if (failed.getCause() != null) {
            failed.getCause().printStackTrace(err);
        }
    }

    /// Says how far it is: on a terminal after each seed, in a log every ten seconds.
    private final class ProgressPrinter implements SimSuite.ProgressListener {
        private final ProgressLine progressLine;
        private final PrintWriter err;
        private final long start;
        private long saidAt;

        ProgressPrinter(ProgressLine progressLine, PrintWriter err, long start) {
            this.progressLine = progressLine;
            this.err = err;
            this.start = start;
            saidAt = start;
        }

        @Override
        public void onSeedEnded(long done, @Nullable AssertionError failed) {
            if (failed != null) {
                progressLine.update("");
                say(String.valueOf(failed.getMessage()).lines().findFirst().orElse(""));
            }
            String text = String.format(Locale.ROOT, "%d of %d seeds, %.0f s", done, seeds, seconds(start));
            progressLine.update(text);
            if (!progressLine.isTerminal() && System.nanoTime() - saidAt >= REPORT_INTERVAL_NANOS) {
                saidAt = System.nanoTime();
                say(text);
            }
        }

        private void say(String text) {
            err.println(text);
            err.flush();
        }
    }
}
