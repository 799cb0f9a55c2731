package io.kvcache.bench.cli;

import io.kvcache.bench.Median;
import io.kvcache.bench.crash.CrashCost;
import io.kvcache.bench.crash.CrashTestRunner;
import io.kvcache.bench.crash.CrashTestRunner.CrashRound;
import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.bench.trace.TraceReader;
import io.kvcache.bench.trace.TraceReader.MalformedLine;
import io.kvcache.bench.trace.TraceSource;
import io.kvcache.server.cli.ProgressLine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
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

    @Override
    public Integer call() throws IOException {
        if (rounds < 1) {
            throw io.usageError("--rounds is '" + rounds + "', must be: at least 1");
        }
        if (directory != null && !Files.isDirectory(directory)) {
            throw io.usageError("--dir is '" + directory + "', must be: an existing directory");
        }
        Path folder = directory == null ? Files.createTempDirectory("kvcache-crash-") : directory;
        try {
            return (replay.isEmpty() ? run(folder) : replay(folder)) ? 0 : 1;
        } finally {
            if (directory == null) {
                Files.delete(folder);
            }
        }
    }

    private boolean run(Path folder) throws IOException {
        long start = System.nanoTime();
        List<CrashRound> all = new ArrayList<>();
        boolean passed;
        try (ProgressLine progressLine = new ProgressLine(io.err())) {
            passed = new CrashTestRunner(folder, seed, round -> {
                        all.add(round);
                        progressLine.update("round " + all.size() + " of " + rounds);
                    })
                    .run(rounds);
        }
        all.stream()
                .filter(round -> !round.passed())
                .forEach(round -> io.println("round " + round.number() + " failed: " + round));
        io.println(String.format(
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
        io.println(String.format(
                Locale.ROOT,
                "%s: killed -9 after request %,d of %,d, without a flush; of the blocks asked for after that,"
                        + " %.4f were there, %.4f without the kill: %.1f %%; %,d wrong",
                replay,
                found.killedAfter(),
                requests,
                found.interrupted().totals().blockHitRatio(),
                found.uninterrupted().totals().blockHitRatio(),
                100 * found.keptShare(),
                found.interrupted().check().wrongBlocks()));
        return found.passed();
    }
}
