package io.kvcache.bench.cli;

import io.kvcache.bench.sim.RareCounts;
import io.kvcache.bench.sim.SimSuite;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `kvcache sim`: the store over disks that fail, in virtual time, seed by seed.
@Command(
        name = "sim",
        description =
                "Run the store over disks that fail and crash, in virtual time, and check every byte and promise.",
        footer = {"", "Exit code: 0 all seeds are clean, 1 one is not, and the command that repeats it is printed."},
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class SimCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Option(
            names = "--seeds",
            paramLabel = "N",
            defaultValue = "100",
            description = "Seeds. Default: ${DEFAULT-VALUE}.")
    private long seeds;

    @Option(
            names = "--seed",
            paramLabel = "S",
            defaultValue = "1",
            description = "The first. Default: ${DEFAULT-VALUE}.")
    private long first;

    @Option(
            names = "--ticks",
            paramLabel = "T",
            defaultValue = "" + SimSuite.USUAL_STEPS,
            description = "Steps of each run. Default: ${DEFAULT-VALUE}.")
    private int steps;

    @Override
    public Integer call() {
        if (seeds < 1 || steps < 1) {
            throw new ParameterException(spec.commandLine(), "kvcache sim: --seeds and --ticks take 1 and up");
        }
        // The store's classes are not loaded yet.
        ClassLoader.getSystemClassLoader().setPackageAssertionStatus("io.kvcache", true);
        PrintWriter out = spec.commandLine().getOut();
        long start = System.nanoTime();
        try (Progress progress = new Progress(spec.commandLine().getErr())) {
            RareCounts seen = new SimSuite(steps).run(first, seeds, seed -> progress.show("seed " + seed));
            progress.show("");
            seen.all().forEach((what, count) -> out.printf("%12d  %s%n", count, what));
            out.printf(
                    "%d seeds from %d on, each twice, %d steps: clean, in %.0f s%n",
                    seeds, first, steps, (System.nanoTime() - start) / 1e9);
            out.flush();
            return 0;
        } catch (AssertionError failed) {
            PrintWriter err = spec.commandLine().getErr();
            err.println(failed.getMessage());
            if (failed.getCause() != null) {
                failed.getCause().printStackTrace(err);
            }
            err.flush();
            return 1;
        }
    }
}
