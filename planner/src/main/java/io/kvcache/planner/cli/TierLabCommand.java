package io.kvcache.planner.cli;

import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.planner.cli.PlanningOptions.EngineOptions;
import io.kvcache.planner.cli.PlanningOptions.FormatOption;
import io.kvcache.planner.cli.PlanningOptions.HtmlReportOption;
import io.kvcache.planner.cli.PlanningOptions.PolicyOptions;
import io.kvcache.planner.cli.PlanningOptions.PriceOption;
import io.kvcache.planner.cli.PlanningOptions.SeedsOption;
import io.kvcache.planner.cli.PlanningOptions.TraceOption;
import io.kvcache.planner.cli.RowPrinter.OutputFormat;
import io.kvcache.planner.lab.EngineHardware;
import io.kvcache.planner.lab.TierComparison;
import io.kvcache.planner.lab.TierComparison.TierShares;
import io.kvcache.planner.lab.TierPrices;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.report.Column;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.report.TierHtmlReport;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.server.cli.ProgressLine;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `kvcache lab tiers`: policies over host memory and a disk, and what their hits do to the time to
/// the first token.
@Command(
        name = "tiers",
        description =
                "Compare policies and rules of admission over host memory and a disk, and a GPU's memory: hits, prefill time saved,"
                        + " the same less the time of moving (net), time to the first token, blocks written and all bytes"
                        + " that the disk got, both of what was put.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class TierLabCommand implements Callable<Integer> {

    /// Rounding of host memory, in times what was asked for, that goes without saying.
    private static final double MAX_OVERSHOOT = 1.3;

    private static final String NO_DEVICE = "0";

    @Mixin
    private final CommandIo io = new CommandIo();

    @Mixin
    private final TraceOption trace = new TraceOption();

    @Mixin
    private final EngineOptions engine = new EngineOptions();

    @Option(
            names = "--first",
            paramLabel = "N",
            defaultValue = "2147483647",
            description = "Replay only this many of the trace's requests. Default: all.")
    private int first;

    @Option(
            names = "--host",
            paramLabel = "PERCENT",
            defaultValue = "2",
            description = "Host memory in percent of the distinct blocks, in whole slabs. Default: ${DEFAULT-VALUE}.")
    private String host = "";

    @Option(
            names = "--device",
            paramLabel = "PERCENT",
            defaultValue = NO_DEVICE,
            description = "Memory of the engine's GPU that keeps blocks in front of host memory, in percent of the"
                    + " distinct blocks. Default: none.")
    private String device = "";

    @Option(
            names = "--disk",
            paramLabel = "PERCENT",
            defaultValue = "10",
            description = "Disk in percent of the distinct blocks, at least as large as host memory."
                    + " Default: ${DEFAULT-VALUE}.")
    private String disk = "";

    @Mixin
    private final PolicyOptions policies = new PolicyOptions();

    @Option(
            names = "--modelled",
            description = "Also run the store's own policies in that model, beside the store itself.")
    private boolean modelled;

    @Option(
            names = "--admission",
            paramLabel = "NAME",
            split = ",",
            defaultValue = "always,second-hit,value",
            description = "Rules of admission to the disk: always, second-hit, value. Default: ${DEFAULT-VALUE}.")
    private List<String> admissions = new ArrayList<>();

    @Option(
            names = "--folder",
            paramLabel = "DIR",
            description = "Empty directory for the disk's file. Default: a temporary directory.")
    private @Nullable Path folder;

    private boolean headed;

    @Mixin
    private final FormatOption format = new FormatOption();

    @Mixin
    private final SeedsOption seeds = new SeedsOption();

    @Mixin
    private final PriceOption price = new PriceOption();

    @Mixin
    private final HtmlReportOption html = new HtmlReportOption();

    @Override
    public Integer call() throws IOException {
        TierLabOptions tierLabOptions = tierLabOptions();
        engine.printRemarks(io.err());
        PlanningRows rows = new PlanningRows(
                io, new RowPrinter(io, format.format()), tierLabOptions.sources, tierLabOptions.columns());
        AtomicLong wrong = new AtomicLong();
        rows.forEachTrace((trace, sha256, progressLine) -> {
            engine.printRemarks(trace, io.err());
            wrong.addAndGet(run(tierLabOptions, trace.firstRequests(first), sha256, rows, progressLine));
        });
        return wrong.get() == 0 ? 0 : 1;
    }

    /// Returns how many blocks had wrong bytes.
    private long run(
            TierLabOptions tierLabOptions, Trace read, String sha256, PlanningRows rows, ProgressLine progressLine)
            throws IOException {
        if (tierLabOptions.prices.isPresent()) {
            io.check(() -> TierPrices.requireTimestamps(read));
        }
        Path chosen = folder;
        Path place = chosen == null ? Files.createTempDirectory("kvcache-lab") : chosen;
        TierHtmlReport page = new TierHtmlReport(tierLabOptions.columns(), read, sha256);
        try {
            return run(
                    tierLabOptions,
                    read,
                    new TierComparison(read, tierLabOptions.hardware, place),
                    page,
                    rows,
                    progressLine);
        } finally {
            if (chosen == null) {
                Files.deleteIfExists(place);
            }
        }
    }

    private record TierLabOptions(
            List<TraceSource> sources,
            EngineHardware hardware,
            TierShares shares,
            List<SimulatedCache> policies,
            List<AdmissionKind> admissions,
            Optional<TierPrices> prices) {

        List<Column> columns() {
            return TierHtmlReport.columns(shares.device() > 0);
        }
    }

    private long run(
            TierLabOptions tierLabOptions,
            Trace read,
            TierComparison laboratory,
            TierHtmlReport page,
            PlanningRows output,
            ProgressLine progressLine)
            throws IOException {
        if (laboratory.distinctBlocks() == 0) {
            throw new IOException("no prompt of the trace has a full block, so there is nothing to keep in any tier");
        }
        laboratory.requireEmpty();
        requireLargerDisk(laboratory, tierLabOptions.shares);
        notes(laboratory, tierLabOptions.shares.host());
        AtomicLong wrong = new AtomicLong();
        for (SimulatedCache policy : tierLabOptions.policies) {
            progressLine.update("replaying " + policy.commandName());
            rows(tierLabOptions, policy, laboratory, row -> {
                progressLine.update("");
                show(row, read, output);
                tierLabOptions.prices.ifPresent(
                        prices -> io.println("    a month: " + money(prices, row, tierLabOptions.hardware, read)));
                page.addRow(row);
                wrong.addAndGet(row.count("wrongBlocks"));
                progressLine.update("replaying " + policy.commandName());
            });
        }
        progressLine.close();
        explain(output);
        html.write(() -> page.toHtmlReport(html.origin(io)));
        return wrong.get();
    }

    /// A disk that is smaller than host memory is not a tier below it: it holds next to nothing that host memory
    /// lacks.
    private void requireLargerDisk(TierComparison laboratory, TierShares shares) {
        int hostBlocks = laboratory.hostBlocks(shares.host());
        int diskBlocks = laboratory.diskBlocks(shares.disk());
        if (diskBlocks >= hostBlocks) {
            return;
        }
        double hostPercent = 100.0 * hostBlocks / laboratory.distinctBlocks();
        throw io.usageError(String.format(
                Locale.ROOT,
                "--disk is '%s' (room for %,d of the blocks), must be: %s. Host memory comes in whole slabs, here with room"
                        + " for %,d blocks: %.1f %% of the distinct ones, where --host is '%s'. Or replay more requests",
                disk,
                diskBlocks,
                hostPercent > 100
                        ? "no smaller than host memory, which no disk of up to 100 is here"
                        : String.format(Locale.ROOT, "at least %.1f", Math.ceil(10 * hostPercent) / 10),
                hostBlocks,
                hostPercent,
                host));
    }

    /// Prints the circumstances that make rows misleading.
    private void notes(TierComparison laboratory, double hostShare) {
        PrintWriter errors = io.err();
        int blocks = laboratory.hostBlocks(hostShare);
        double share = (double) blocks / laboratory.distinctBlocks();
        if (share > MAX_OVERSHOOT * hostShare) {
            errors.println(String.format(
                    Locale.ROOT,
                    "kvcache: host memory comes in whole slabs, here with room for %,d blocks: %.1f %% of the distinct"
                            + " ones and not %s %%",
                    blocks,
                    100 * share,
                    host.replace("%", "")));
        }
        if (!laboratory.hasTimestamps()) {
            errors.println("kvcache: " + PlanningOptions.NO_TIMESTAMPS_NOTE);
        }
        errors.flush();
    }

    private String money(TierPrices prices, ResultRow row, EngineHardware hardware, Trace read) {
        long blockBytes = read.blockBytes(hardware.bytesPerToken());
        return prices.money(
                        row.count("hostBlocks") * blockBytes,
                        row.count("diskBlocks") * blockBytes,
                        row.number("prefillSecondsSaved") * engine.gpus(),
                        read.spanMinutes())
                .text();
    }

    private void rows(
            TierLabOptions tierLabOptions, SimulatedCache policy, TierComparison laboratory, Consumer<ResultRow> each)
            throws IOException {
        TierShares shares = tierLabOptions.shares;
        if (policy instanceof PolicyReplay own) {
            for (AdmissionKind admission : tierLabOptions.admissions) {
                each.accept(laboratory.run(own.kind(), admission, shares));
            }
        }
        if (modelled || !(policy instanceof PolicyReplay)) {
            each.accept(laboratory.runModel(policy, shares));
        }
    }

    private TierLabOptions tierLabOptions() {
        return io.check(() -> {
            format.format();
            html.checkWritable();
            seeds.checkWithout("--html", html.isGiven());
            TierShares shares = new TierShares(
                    device.equals(NO_DEVICE) ? 0 : PlanningOptions.parseShare("--device", device),
                    PlanningOptions.parseShare("--host", host),
                    PlanningOptions.parseShare("--disk", disk));
            if (first < 1) {
                throw PlanningOptions.invalidOption("--first", String.valueOf(first), "at least 1");
            }
            return new TierLabOptions(
                    seeds.sources(trace.traceSource()),
                    engine.hardware(),
                    shares,
                    policies.replays(List.of()),
                    admissions.stream().map(TierLabCommand::admission).toList(),
                    prices());
        });
    }

    private Optional<TierPrices> prices() {
        Optional<TierPrices> prices = price.prices();
        if (prices.isPresent() && format.format() != OutputFormat.TEXT) {
            throw new IllegalArgumentException("--price is given, must be: absent with --format json or csv, whose"
                    + " rows have the seconds saved");
        }
        seeds.checkWithout("--price", prices.isPresent());
        return prices;
    }

    private static AdmissionKind admission(String name) {
        return AdmissionKind.fromName(name)
                .orElseThrow(() -> PlanningOptions.invalidOption("--admission", name, AdmissionKind.names()));
    }

    private void show(ResultRow row, Trace read, PlanningRows output) {
        if (!headed) {
            headed = true;
            output.head(
                    "%s: %shost memory for %,d blocks (%.2f %% of the distinct ones), a disk for %,d (%.2f %%); %s",
                    row.text("trace"),
                    deviceText(row),
                    row.count("hostBlocks"),
                    100 * row.number("hostShare"),
                    row.count("diskBlocks"),
                    100 * row.number("diskShare"),
                    engine.title());
        }
        output.add(row.put("engine", engine.title())
                .put("requests", read.requests().size()));
    }

    private static String deviceText(ResultRow row) {
        return row.count("deviceBlocks") == 0
                ? ""
                : String.format(
                        Locale.ROOT,
                        "a GPU's memory for %,d blocks (%.2f %%), ",
                        row.count("deviceBlocks"),
                        100 * row.number("deviceShare"));
    }

    private static void explain(PlanningRows output) {
        output.note(
                "run: store is the store itself, with blocks and a disk's file; model is a simulation of both tiers, for"
                        + " policies that the store does not have, whose disk is LRU and takes every block.");
        output.note(
                "of gap: the way from LRU, in one cache as large as the larger tier, to Belady's rule with bypass in one as"
                        + " large as both. Below 0: fewer hits than that LRU.");
        output.note(
                "blocks of put: blocks written to disk, of the blocks that were put because no tier had them. bytes of"
                        + " put: all bytes that the disk got, with tables and what was written again to make room, of the bytes"
                        + " put. Both can exceed 100 %: a block that has left the disk and is used again is written again.");
    }
}
