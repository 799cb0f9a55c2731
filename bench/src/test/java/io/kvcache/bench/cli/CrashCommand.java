package io.kvcache.bench.cli;

import io.kvcache.bench.crash.CrashCost;
import io.kvcache.bench.crash.CrashTestRunner;
import io.kvcache.bench.crash.CrashTestRunner.CrashRound;
import io.kvcache.planner.Median;
import io.kvcache.planner.cli.CommandIo;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.store.TierReplay;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.server.cli.ProgressLine;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `kvcache crash`: kills processes that write to a disk tier, and looks at what the next opening finds.
@Command(
        name = "crash",
        description = "Kill -9 a process that writes to a disk tier, again and again, and check that all flushed blocks"
                + " are there and every byte is right.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class CrashCommand implements Callable<Integer> {

    /// Longer than a round takes.
    private static final int MAX_END_SECONDS = 10;

    @Mixin
    private final CommandIo io = new CommandIo();

    @Option(
            names = "--rounds",
            paramLabel = "N",
            defaultValue = "200",
            description = "Processes to kill. Default: ${DEFAULT-VALUE}.")
    private int rounds;

    @Option(
            names = "--seed",
            paramLabel = "S",
            defaultValue = "1",
            description = "Seed of their work and of their end.")
    private long seed;

    @Option(
            names = "--dir",
            paramLabel = "DIR",
            description = "Directory for the tier of 256 MiB. Default: a temporary directory.")
    private @Nullable Path directory;

    @Option(
            names = "--replay",
            paramLabel = "TRACE",
            defaultValue = "",
            description = "Instead, kill a process in the middle of a replay of this trace, without a flush, and"
                    + " compare the hits of one that goes on: at least 80 %% are left.")
    private String replay = "";

    /// Rounds that have ended. The thread that runs at an interrupt reads them too.
    private final List<CrashRound> all = new CopyOnWriteArrayList<>();

    /// Reached when the run has deleted its files.
    private final CountDownLatch ended = new CountDownLatch(1);

    private ProgressLine progressLine = new ProgressLine(new PrintWriter(Writer.nullWriter()));
    private volatile boolean interrupted;

    @Override
    public Integer call() throws IOException {
        if (rounds < 1) {
            throw io.usageError("--rounds is '" + rounds + "', must be: at least 1");
        }
        if (directory != null && !Files.isDirectory(directory)) {
            throw io.usageError("--dir is '" + directory + "', must be: an existing directory");
        }
        Path folder = directory == null ? Files.createTempDirectory("kvcache-crash-") : directory;
        CrashTestRunner runner = new CrashTestRunner(folder, seed, this::onRound);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> endEarly(runner, folder)));
        try {
            return (replay.isEmpty() ? run(runner) : replay(folder)) ? 0 : 1;
        } catch (IOException killed) {
            if (interrupted) {
                return 1; // the interrupt killed the process; the tier has not failed
            }
            throw killed;
        } finally {
            if (directory == null) {
                Files.deleteIfExists(folder);
            }
            ended.countDown();
        }
    }

    private void onRound(CrashRound round) {
        all.add(round);
        progressLine.update("round " + all.size() + " of " + rounds);
    }

    /// Runs when this JVM exits. At Ctrl-C and SIGTERM, ends the round, waits until it has deleted its files, deletes
    /// the files that are left after some seconds, and says how far the run got.
    private void endEarly(CrashTestRunner runner, Path folder) {
        if (ended.getCount() == 0) {
            return; // the run is over
        }
        interrupted = true;
        runner.stop();
        ProcessHandle.current().children().forEach(ProcessHandle::destroyForcibly);
        try {
            if (!ended.await(MAX_END_SECONDS, TimeUnit.SECONDS)) {
                TierReplay.deleteTier(folder.resolve("crash-tier"));
                if (directory == null) {
                    Files.deleteIfExists(folder);
                }
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        } catch (IOException left) {
            io.printError("could not delete the tier in " + folder + ": " + left.getMessage());
        }
        long failed = all.stream().filter(round -> !round.passed()).count();
        io.printError(
                replay.isEmpty()
                        ? "interrupted after " + all.size() + " of " + rounds + " rounds; " + failed + " failed"
                        : "interrupted; nothing was compared");
    }

    private boolean run(CrashTestRunner runner) throws IOException {
        long start = System.nanoTime();
        boolean passed;
        try (ProgressLine line = new ProgressLine(io.err())) {
            progressLine = line;
            passed = runner.run(rounds);
        }
        if (interrupted) {
            return passed;
        }
        all.stream()
                .filter(round -> !round.passed())
                .forEach(round -> io.println("round " + round.number() + " failed: " + round));
        io.printText(String.format(
                Locale.ROOT,
                "%,d processes killed -9: %,d flushed blocks and objects looked for, %,d missing, %,d wrong,"
                        + " %,d dropped and back, %,d bad by fsck; reopened in %.0f ms (median)   %.0f s",
                all.size(),
                all.stream().mapToLong(CrashRound::promised).sum(),
                all.stream().mapToLong(CrashRound::missing).sum(),
                all.stream().mapToLong(CrashRound::wrong).sum(),
                all.stream().mapToLong(CrashRound::resurrected).sum(),
                all.stream().mapToLong(CrashRound::corrupt).sum(),
                1e3 * Median.of(all, CrashRound::reopenSeconds),
                (System.nanoTime() - start) / 1e9));
        return passed;
    }

    private boolean replay(Path folder) throws IOException {
        TraceReader reader = new TraceReader(MalformedLine.Handling.SKIP, _ -> {});
        PrefixForest forest = new PrefixForest(TraceSource.parse(replay).load(reader), BlockCountingRule.REFERENCE);
        int requests = forest.requestCount();
        CrashCost found = CrashCost.of(folder.resolve("crash-tier"), replay, forest, requests / 2, requests);
        io.printText(String.format(
                Locale.ROOT,
                "%s: killed -9 after request %,d of %,d, without a flush; of the blocks asked for after that,"
                        + " %s were there, %s without the kill: %.1f %% of the hits are left; %,d wrong",
                replay,
                found.killedAfter(),
                requests,
                CommandIo.percent(found.interrupted().totals().blockHitRatio()),
                CommandIo.percent(found.uninterrupted().totals().blockHitRatio()),
                100 * found.keptShare(),
                found.interrupted().check().wrongBlocks()));
        return found.passed();
    }
}
