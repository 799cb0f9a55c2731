package io.kvcache.bench.cli;

import io.kvcache.bench.constant.ConstantSweep;
import io.kvcache.bench.constant.ConstantSweepRow;
import io.kvcache.bench.constant.TunableConstant;
import io.kvcache.bench.constant.TunableConstants;
import io.kvcache.server.cli.ProgressLine;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import tools.jackson.databind.json.JsonMapper;

/// `kvcache lab constants`: what half and twice of each chosen constant would change.
@Command(
        name = "constants",
        description = "Halve and double each constant of importance and of admission by value, also those that are"
                + " compiled in: the core is compiled anew for each. Takes a checkout, a JDK and minutes.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class ConstantLabCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private final TraceListOption traces = new TraceListOption();

    @Option(
            names = "--first",
            paramLabel = "N",
            defaultValue = "2147483647",
            description = "Only so many of a trace's requests. Default: all.")
    private int first;

    @Option(
            names = "--constant",
            paramLabel = "NAME",
            split = ",",
            description = "Only these, as Guard.CHANCE, or all of a class, as Guard. Default: all; --list names them.")
    private List<String> names = new ArrayList<>();

    @Option(names = "--list", description = "Only say which there are, and how each was chosen.")
    private boolean list;

    @Option(
            names = "--sources",
            paramLabel = "DIR",
            defaultValue = "kvcache-core/src/main/java",
            description = "The core's sources. Default: ${DEFAULT-VALUE}, of a checkout that one stands in.")
    private Path sources = Path.of("");

    @Option(names = "--json", description = "One JSON object a line instead of a table.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        List<TunableConstant> constants = constants();
        if (list) {
            constants.forEach(each -> print(String.format(
                    Locale.ROOT,
                    "%-28s %-8s %s",
                    each.label(),
                    each.effect().name().toLowerCase(Locale.ROOT),
                    each.chosen())));
            return 0;
        }
        if (!json) {
            print("trace          constant                     value         factor   hits, mean     worst      best"
                    + "      saved   written");
        }
        try (ProgressLine progressLine = new ProgressLine(spec.commandLine().getErr())) {
            for (String trace : traces.traceNames()) {
                ConstantSweep laboratory = new ConstantSweep(trace, first, sources);
                for (TunableConstant constant : constants) {
                    progressLine.update("compiling and replaying with another " + constant.label());
                    List<ConstantSweepRow> rows = laboratory.rows(constant);
                    progressLine.update("");
                    rows.forEach(this::show);
                }
            }
        }
        return 0;
    }

    private void show(ConstantSweepRow row) {
        if (json) {
            print(JsonMapper.builder().build().writeValueAsString(row));
            return;
        }
        boolean writing = row.effect().equals("writing");
        print(String.format(
                        Locale.ROOT,
                        "%-14s %-28s %-13s x %-6s %+7.2f pts %+9.2f %+9.2f%s",
                        row.trace(),
                        row.constant(),
                        row.value(),
                        row.factor(),
                        row.meanPoints(),
                        row.worstPoints(),
                        row.bestPoints(),
                        writing
                                ? String.format(
                                        Locale.ROOT,
                                        "  %+6.1f %%  %+6.1f pts",
                                        100 * row.savedChange(),
                                        row.writtenPoints())
                                : "")
                .stripTrailing());
    }

    private List<TunableConstant> constants() {
        try {
            if (first < 1) {
                throw ReplayOptions.invalidOption("--first", String.valueOf(first), "at least 1");
            }
            traces.traceSources();
            List<TunableConstant> chosen = new ArrayList<>();
            for (String name : names) {
                List<TunableConstant> named = TunableConstants.all().stream()
                        .filter(each ->
                                each.label().equals(name) || each.label().startsWith(name + "."))
                        .toList();
                if (named.isEmpty()) {
                    throw ReplayOptions.invalidOption(
                            "--constant",
                            name,
                            TunableConstants.all().stream()
                                    .map(TunableConstant::label)
                                    .collect(Collectors.joining(", ")));
                }
                chosen.addAll(named);
            }
            return names.isEmpty() ? TunableConstants.all() : chosen;
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "kvcache lab constants: " + e.getMessage(), e);
        }
    }

    private void print(String line) {
        PrintWriter out = spec.commandLine().getOut();
        out.println(line);
        out.flush();
    }
}
