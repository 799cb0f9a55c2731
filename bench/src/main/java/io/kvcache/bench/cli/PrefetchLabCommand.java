package io.kvcache.bench.cli;

import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.bench.store.PrefetchReplay;
import io.kvcache.bench.store.PrefetchReplay.Result;
import io.kvcache.bench.store.ScratchDirectory;
import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.server.cli.ByteSizeText;
import io.kvcache.server.cli.ProgressLine;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import tools.jackson.databind.json.JsonMapper;

/// `kvcache lab prefetch`: what bringing in ahead does to the time until a prompt's blocks are
/// there.
@Command(
        name = "prefetch",
        description = "Replay a trace through two stores with a disk in turns, one of which brings in what is matched,"
                + " and what followed a chain before: requests that wait for the disk, the time until all blocks of"
                + " those are there that had some on disk, guesses, and what was read in vain.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class PrefetchLabCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private final TraceOption trace = new TraceOption();

    @Option(
            names = "--first",
            paramLabel = "N",
            defaultValue = "2000",
            description = "Only so many of the trace's requests. Default: ${DEFAULT-VALUE}.")
    private int first;

    @Option(
            names = "--host",
            paramLabel = "BLOCKS",
            defaultValue = "1000",
            description = "Host memory, in whole slabs. Default: ${DEFAULT-VALUE}.")
    private int host;

    @Option(
            names = "--disk",
            paramLabel = "BLOCKS",
            defaultValue = "20000",
            description = "Disk of each store. Default: ${DEFAULT-VALUE}.")
    private int disk;

    @Option(
            names = "--bytes",
            paramLabel = "SIZE",
            defaultValue = "64KiB",
            description = "Bytes of a block. Default: ${DEFAULT-VALUE}.")
    private String bytes = "";

    @Option(
            names = "--queue",
            paramLabel = "MILLIS",
            defaultValue = "5",
            description = "From a look-up to the acquire that follows. Default: ${DEFAULT-VALUE}.")
    private int queueMillis;

    @Option(
            names = "--policy",
            paramLabel = "NAME",
            defaultValue = "importance",
            description = "The store's policy. Default: ${DEFAULT-VALUE}.")
    private String policy = "";

    @Option(
            names = "--folder",
            paramLabel = "DIR",
            description = "Where the disks' files go; must be empty. Default: one for temporary files.")
    private @Nullable Path folder;

    @Option(names = "--json", description = "One JSON object in place of a table.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        PrefetchReplay.Settings settings = settings();
        PrefixForest forest = new PrefixForest(
                TraceOption.loadTrace(trace.traceSource(), spec.commandLine().getErr())
                        .firstRequests(first),
                BlockCountingRule.FULL_BLOCKS);
        Path chosen = folder;
        Path place = chosen == null ? Files.createTempDirectory("kvcache-prefetch") : chosen;
        ScratchDirectory.requireEmpty(place);
        PrefetchReplay.Results results;
        try (ProgressLine progressLine = new ProgressLine(spec.commandLine().getErr())) {
            results = new PrefetchReplay(forest, settings)
                    .run(
                            forest.requestCount(),
                            place,
                            request -> progressLine.update("request " + request + " of " + forest.requestCount()));
        } finally {
            ScratchDirectory.deleteTier(place.resolve("without"));
            ScratchDirectory.deleteTier(place.resolve("with"));
            if (chosen == null) {
                Files.deleteIfExists(place);
            }
        }
        show(results);
        return results.with().wrongBlocks() + results.without().wrongBlocks() == 0 ? 0 : 1;
    }

    private PrefetchReplay.Settings settings() {
        try {
            var _ = trace.traceSource();
            if (first < 1 || host < 1 || disk < 1 || queueMillis < 0) {
                throw new IllegalArgumentException("--first, --host and --disk must be at least 1, --queue at least 0");
            }
            EvictionPolicyFactory kind = EvictionPolicies.find(policy)
                    .orElseThrow(() -> ReplayOptions.invalidOption("--policy", policy, EvictionPolicies.names()));
            return new PrefetchReplay.Settings(
                    kind,
                    host,
                    disk,
                    Math.toIntExact(ByteSizeText.parse(bytes).bytes()),
                    TimeUnit.MILLISECONDS.toNanos(queueMillis));
        } catch (IllegalArgumentException | ArithmeticException e) {
            throw new ParameterException(spec.commandLine(), "kvcache lab prefetch: " + e.getMessage(), e);
        }
    }

    private void show(PrefetchReplay.Results results) {
        PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(JsonMapper.builder().build().writeValueAsString(results));
        } else {
            out.println(
                    "prefetch  waited for disk  blocks found  mean      p50       p99       guesses  used     wasted"
                            + "   in vain");
            out.println(text("off", results.without()));
            out.println(text("on", results.with()));
            out.println(
                    results.timed() == 0
                            ? "no request had blocks on disk, so no time was compared: take more requests, or less host memory"
                            : String.format(
                                    Locale.ROOT,
                                    "times to ready of %,d requests with blocks on disk; mean with to without: %.2f",
                                    results.timed(),
                                    results.ratio()));
        }
        out.flush();
    }

    private static String text(String name, Result result) {
        return String.format(
                Locale.ROOT,
                "%-8s  %,7d of %,6d  %,12d  %-8s  %-8s  %-8s  %,-7d  %,-7d  %,-7d  %s",
                name,
                result.waited(),
                result.requests(),
                result.blocks(),
                millis(result.meanNanos()),
                millis((double) result.medianNanos()),
                millis((double) result.p99Nanos()),
                result.guesses().begun(),
                result.guesses().used(),
                result.guesses().wasted(),
                result.wastedBytes() == 0 ? "0 B" : new ByteSizeText(result.wastedBytes()).toString());
    }

    private static String millis(double nanos) {
        return String.format(Locale.ROOT, "%.2f ms", nanos / 1e6);
    }
}
