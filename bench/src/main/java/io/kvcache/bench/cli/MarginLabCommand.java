package io.kvcache.bench.cli;

import io.kvcache.bench.lab.MarginRow;
import io.kvcache.bench.lab.PolicyRegressionCheck;
import io.kvcache.bench.trace.TraceSource;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import tools.jackson.databind.json.JsonMapper;

/// `kvcache lab margins`: importance beside the better of LRU and LFU-DA, over capacities.
@Command(
        name = "margins",
        description = "Importance beside the better of LRU and LFU-DA over capacities; exits with 1 where it finds"
                + " half a point less.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class MarginLabCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private final TraceListOption traces = new TraceListOption();

    @Mixin
    private final CapacitySharesOption shares = new CapacitySharesOption();

    @Option(
            names = "--look-ahead",
            paramLabel = "N",
            defaultValue = "0",
            description = "Requests that importance knows before they come. Default: none.")
    private int lookAhead;

    @Option(
            names = "--format",
            paramLabel = "text|json|csv",
            defaultValue = "text",
            description = "A table, one JSON object a line, or comma-separated values. Default: ${DEFAULT-VALUE}.")
    private String format = "";

    @Override
    public Integer call() throws IOException {
        List<TraceSource> sources = sources();
        head();
        boolean all = true;
        for (TraceSource source : sources) {
            PolicyRegressionCheck policyRegressionCheck = new PolicyRegressionCheck(
                    TraceOption.loadTrace(source, spec.commandLine().getErr()), lookAhead);
            for (double share : shares.shares()) {
                MarginRow row = policyRegressionCheck.compareAt(share);
                all &= row.withinMargin();
                print(
                        switch (format) {
                            case "json" -> JsonMapper.builder().build().writeValueAsString(row);
                            case "csv" -> row.csv();
                            default -> text(row);
                        });
            }
        }
        return all ? 0 : 1;
    }

    private List<TraceSource> sources() {
        try {
            LabReportFormat.checkFormat(format);
            if (lookAhead < 0) {
                throw ReplayOptions.invalidOption("--look-ahead", String.valueOf(lookAhead), "at least 0");
            }
            shares.shares();
            return traces.traceSources();
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "kvcache lab margins: " + e.getMessage(), e);
        }
    }

    private void head() {
        switch (format) {
            case "csv" -> print(MarginRow.CSV_HEAD);
            case "text" ->
                print("trace           share    blocks      LRU   LFU-DA  importance   Belady  of the gap"
                        + "     margin  times LRU");
            default -> {}
        }
    }

    private static String text(MarginRow row) {
        return String.format(
                Locale.ROOT,
                "%-14s %4.1f %% %9s  %7.4f  %7.4f     %7.4f  %7.4f      %4.0f %%  %+6.2f pts       %4.2f%s",
                row.trace(),
                100 * row.share(),
                String.format(Locale.ROOT, "%,d", row.blocks()),
                row.lru(),
                row.lfuDa(),
                row.importance(),
                row.belady(),
                100 * row.gapClosed(),
                100 * row.margin(),
                row.timesLru(),
                row.withinMargin() ? "" : "  below");
    }

    private void print(String line) {
        PrintWriter out = spec.commandLine().getOut();
        out.println(line);
        out.flush();
    }
}
