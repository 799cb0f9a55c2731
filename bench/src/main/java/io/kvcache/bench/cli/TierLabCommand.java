package io.kvcache.bench.cli;

import io.kvcache.bench.lab.EngineHardware;
import io.kvcache.bench.lab.TierLaboratory;
import io.kvcache.bench.lab.TierRow;
import io.kvcache.bench.report.TierPage;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceSource;
import io.kvcache.core.identity.ModelPreset;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import tools.jackson.databind.json.JsonMapper;

/// `kvcache lab tiers`: policies over host memory and a disk, and what their hits do to the time to the
/// first token.
@Command(
        name = "tiers",
        description = "Compare policies and rules of admission over host memory and a disk: hits, prefill time saved,"
                + " the same less the time of moving (net), time to the first token, blocks written and all bytes"
                + " that the disk got, both of what was put.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class TierLabCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private final TraceOption trace = new TraceOption();

    @Mixin
    private final ModelOption model = new ModelOption();

    @Option(
            names = "--first",
            paramLabel = "N",
            defaultValue = "2147483647",
            description = "Only so many of the trace's requests. Default: all.")
    private int first;

    @Option(
            names = "--host",
            paramLabel = "PERCENT",
            defaultValue = "2",
            description = "Host memory in percent of the distinct blocks, in whole slabs. Default: ${DEFAULT-VALUE}.")
    private double host;

    @Option(
            names = "--disk",
            paramLabel = "PERCENT",
            defaultValue = "10",
            description = "Disk in percent of the distinct blocks. Default: ${DEFAULT-VALUE}.")
    private double disk;

    @Option(
            names = "--policy",
            paramLabel = "NAME",
            split = ",",
            defaultValue = "lru,lfu-da,gdsf,slru,importance",
            description = "Policies of host memory. Default: ${DEFAULT-VALUE}.")
    private List<String> policies = new ArrayList<>();

    @Option(
            names = "--admission",
            paramLabel = "NAME",
            split = ",",
            defaultValue = "always,second-hit,value",
            description = "What is written to disk: always, second-hit, value. Default: ${DEFAULT-VALUE}.")
    private List<String> admissions = new ArrayList<>();

    @Option(
            names = "--gpus",
            paramLabel = "N",
            defaultValue = "4",
            description = "H100 that prefill together, at half their peak. Default: ${DEFAULT-VALUE}.")
    private int gpus;

    @Option(
            names = "--folder",
            paramLabel = "DIR",
            description = "Where the disk's file goes; must be empty. Default: one for temporary files.")
    private @Nullable Path folder;

    @Option(
            names = "--format",
            paramLabel = "text|json|csv",
            defaultValue = "text",
            description = "A table, one JSON object a line, or comma-separated values. Default: ${DEFAULT-VALUE}.")
    private String format = "";

    @Option(names = "--json", description = "As --format json.")
    private boolean json;

    @Mixin
    private final HtmlOption html = new HtmlOption();

    @Override
    public Integer call() throws IOException {
        Choices choices = choices();
        Trace read = TraceOption.load(choices.source).first(first);
        Path chosen = folder;
        Path place = chosen == null ? Files.createTempDirectory("kvcache-lab") : chosen;
        try {
            TierPage page = new TierPage(HtmlOption.command(spec), read);
            return run(choices, new TierLaboratory(read, EngineHardware.h100(choices.preset, gpus), place), page);
        } finally {
            if (chosen == null) {
                Files.deleteIfExists(place);
            }
        }
    }

    private record Choices(
            TraceSource source, ModelPreset preset, List<PolicyKind> policies, List<AdmissionKind> admissions) {}

    private int run(Choices choices, TierLaboratory laboratory, TierPage page) throws IOException {
        String shown = json ? "json" : format;
        switch (shown) {
            case "text" ->
                print(
                        "policy       admission     host    disk      hits  in host    saved   moving       net    p50      p99"
                                + "   written  disk bytes");
            case "csv" -> print(TierRow.CSV_HEAD);
            default -> {}
        }
        boolean right = true;
        for (PolicyKind policy : choices.policies) {
            for (AdmissionKind admission : choices.admissions) {
                TierRow row = laboratory.run(policy, admission, new TierLaboratory.Shares(host / 100, disk / 100));
                print(
                        switch (shown) {
                            case "json" -> JsonMapper.builder().build().writeValueAsString(row);
                            case "csv" -> row.csv();
                            default -> text(row);
                        });
                page.add(row);
                right &= row.wrongBlocks() == 0;
            }
        }
        html.write(page::page);
        return right ? 0 : 1;
    }

    private static String text(TierRow row) {
        return String.format(
                Locale.ROOT,
                "%-12s %-10s %5.2f %% %5.2f %%  %6.2f %%  %6.2f %%  %,6.0f s  %,5.0f s  %,6.0f s  %5.2f s  %5.1f s  %6.1f %%  %8.1f %%",
                row.policy(),
                row.admission(),
                100 * row.hostShare(),
                100 * row.diskShare(),
                100 * row.blockHitRatio(),
                100 * row.hostHitRatio(),
                row.prefillSecondsSaved(),
                row.loadSeconds(),
                row.savedLessLoading(),
                row.ttftP50Seconds(),
                row.ttftP99Seconds(),
                100 * row.writtenOfPut(),
                100 * row.diskBytesOfPut());
    }

    private Choices choices() {
        try {
            LabReport.check(format);
            html.check();
            percent("--host", host);
            percent("--disk", disk);
            if (gpus < 1 || gpus > 1000) {
                throw ReplayChoices.mustBe("--gpus", String.valueOf(gpus), "1 to 1000");
            }
            if (first < 1) {
                throw ReplayChoices.mustBe("--first", String.valueOf(first), "at least 1");
            }
            return new Choices(
                    trace.source(),
                    model.preset(),
                    policies.stream().map(ReplayChoices::ofStore).toList(),
                    admissions.stream().map(TierLabCommand::admission).toList());
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "kvcache lab tiers: " + e.getMessage(), e);
        }
    }

    private static void percent(String option, double percent) {
        if (!(percent > 0 && percent <= 100)) {
            throw ReplayChoices.mustBe(option, String.valueOf(percent), "above 0 to 100");
        }
    }

    private static AdmissionKind admission(String name) {
        return AdmissionKind.named(name)
                .orElseThrow(() -> ReplayChoices.mustBe("--admission", name, AdmissionKind.names()));
    }

    private void print(String line) {
        PrintWriter out = spec.commandLine().getOut();
        out.println(line);
        out.flush();
    }
}
