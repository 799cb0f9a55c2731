package io.kvcache.bench.cli;

import io.kvcache.bench.cli.PlanningOptions.FormatOption;
import io.kvcache.bench.cli.RowPrinter.OutputFormat;
import io.kvcache.bench.store.CaptureReplay;
import io.kvcache.bench.trace.TraceDigest;
import io.kvcache.bench.trace.TraceSource;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.server.cli.ByteSizeText;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `kvcache lab capture`: what a running server wrote of its use, over host memory of other sizes and policies.
@Command(
        name = "capture",
        description = "Replay what `kvcache serve --trace-out` wrote over other sizes of memory and policies.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class CaptureLabCommand implements Callable<Integer> {

    @Mixin
    private final CommandIo io = new CommandIo();

    @Parameters(paramLabel = "FILE", description = "The file that serve --trace-out wrote.")
    private Path file = Path.of("");

    @Option(
            names = "--host-bytes",
            paramLabel = "SIZE",
            split = ",",
            description = "Host memory, at least 32 MiB; the replay allocates it. Default: as much as the server had.")
    private List<String> sizes = new ArrayList<>();

    @Option(
            names = "--policy",
            paramLabel = "NAME",
            split = ",",
            defaultValue = "lru,importance",
            description = "Policies. Default: ${DEFAULT-VALUE}.")
    private List<String> policies = new ArrayList<>();

    @Mixin
    private final FormatOption format = new FormatOption();

    /// A size of memory with a policy.
    ///
    /// @param uses blocks and objects that the server found or was given
    /// @param serverHitRatio of the uses, those that the server found
    /// @param hitRatio those that were found here
    private record CaptureRow(
            String trace, String policy, long hostBytes, long uses, double serverHitRatio, double hitRatio) {}

    @Override
    public Integer call() throws IOException {
        List<EvictionPolicyFactory> kinds;
        List<Long> asked;
        OutputFormat chosen;
        try {
            chosen = format.format();
            kinds = policies.stream().map(PlanningOptions::storePolicy).toList();
            asked = sizes.stream().map(CaptureLabCommand::bytes).toList();
        } catch (IllegalArgumentException e) {
            throw io.usageError(e);
        }
        List<Long> bytes = asked.isEmpty() ? List.of(CaptureReplay.hostBytes(file)) : asked;
        TraceSource source = new TraceSource.File(file);
        PlanningRows rows = new PlanningRows(io, new RowPrinter(io, chosen), List.of(source));
        rows.beginRun(source, TraceDigest.ofFile(file));
        if (rows.isText()) {
            io.println("memory       policy            uses  server found  found here");
        }
        for (long size : bytes) {
            for (EvictionPolicyFactory policy : kinds) {
                CaptureReplay.Result result = CaptureReplay.run(file, size, policy);
                CaptureRow row = new CaptureRow(
                        source.name(),
                        policy.commandName(),
                        size,
                        result.uses(),
                        result.liveHitRatio(),
                        result.replayedHitRatio());
                if (rows.isText()) {
                    io.println(text(row));
                } else {
                    rows.add(row);
                }
            }
        }
        return 0;
    }

    private static String text(CaptureRow row) {
        return String.format(
                Locale.ROOT,
                "%-12s %-12s %,9d  %10.2f %%  %8.2f %%",
                new ByteSizeText(row.hostBytes),
                row.policy,
                row.uses,
                100 * row.serverHitRatio,
                100 * row.hitRatio);
    }

    private static long bytes(String text) {
        long bytes = ByteSizeText.parse(text).bytes();
        if (bytes < SlabPool.MIN_BYTES) {
            throw PlanningOptions.invalidOption("--host-bytes", text, "32 MiB and up");
        }
        return bytes;
    }
}
