package io.kvcache.planner.cli;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.planner.cli.PlanningOptions.FormatOption;
import io.kvcache.planner.cli.RowPrinter.OutputFormat;
import io.kvcache.planner.report.Column;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.store.CaptureReplay;
import io.kvcache.planner.trace.TraceDigest;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.server.cli.ByteSizeText;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
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

    private static final List<Column> COLUMNS = List.of(
            Column.key("hostBytes"),
            Column.key("policy"),
            Column.count("uses", "uses"),
            Column.percent("server found", "serverHitRatio"),
            Column.percent("found here", "hitRatio"));

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
        PlanningRows rows = new PlanningRows(io, new RowPrinter(io, chosen), List.of(source), COLUMNS);
        rows.beginRun(source, TraceDigest.ofFile(file));
        for (long size : bytes) {
            for (EvictionPolicyFactory policy : kinds) {
                CaptureReplay.Result result = CaptureReplay.run(file, size, policy);
                rows.add(new ResultRow()
                        .put("trace", source.name())
                        .put("policy", policy.commandName())
                        .put("hostBytes", size)
                        .put("uses", result.uses())
                        .put("serverHitRatio", result.liveHitRatio())
                        .put("hitRatio", result.replayedHitRatio()));
            }
        }
        return 0;
    }

    private static long bytes(String text) {
        long bytes = ByteSizeText.parse(text).bytes();
        if (bytes < SlabPool.MIN_BYTES) {
            throw PlanningOptions.invalidOption("--host-bytes", text, "32 MiB and up");
        }
        return bytes;
    }
}
