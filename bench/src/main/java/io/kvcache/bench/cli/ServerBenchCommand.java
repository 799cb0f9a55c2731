package io.kvcache.bench.cli;

import io.kvcache.bench.server.ServerBenchmark.BenchmarkOptions;
import io.kvcache.bench.server.ServerBenchmark;
import io.kvcache.bench.server.ServerBenchmarks;
import io.kvcache.bench.suite.BenchResult;
import io.kvcache.bench.suite.BenchmarkSuite;
import io.kvcache.bench.suite.MachineInfo;
import java.io.IOException;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `kvcache bench server`: this server and Debian's redis-server in turn on the same cores, under one client with a
/// thread a connection; and what the server takes by itself.
@Command(
        name = "server",
        description = "Compare the server with redis-server (apt-get install redis-server) on this machine.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class ServerBenchCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Option(
            names = "--part",
            paramLabel = "NAME",
            split = ",",
            description = "Only these parts: values, responder, pipeline, tool, eviction, allocation, start.")
    private List<String> names = List.of();

    @Option(
            names = "--soak",
            paramLabel = "TIME",
            converter = DurationConverter.class,
            description = "Only watch the server's memory for so long, as in 10m, while values come and go.")
    private @Nullable Duration soak;

    @Option(names = "--quick", description = "One short round: shows what is broken, not what is slow.")
    private boolean quick;

    @Option(names = "--json", description = "One JSON object a line instead of a table.")
    private boolean json;

    @Option(names = "--strict", description = "Exit with 1 when a budget is missed.")
    private boolean strict;

    @Option(names = "--record", description = "Also write page and lines to bench/results, with machine and commit.")
    private boolean recorded;

    @Override
    public Integer call() throws IOException, InterruptedException {
        BenchmarkOptions benchmarkOptions =
                quick ? BenchmarkOptions.quick(this::printError) : BenchmarkOptions.full(this::printError);
        List<BenchResult> answers = new ArrayList<>();
        for (ServerBenchmark part : chosen()) {
            printError(part.title() + ", load " + MachineInfo.current().load());
            answers.addAll(part.run(benchmarkOptions));
        }
        printError("load " + MachineInfo.current().load() + " at the end");
        return report(answers);
    }

    private List<ServerBenchmark> chosen() {
        if (soak != null) {
            return List.of(ServerBenchmarks.soak(soak));
        }
        String known =
                ServerBenchmarks.all().stream().map(ServerBenchmark::name).collect(Collectors.joining(", "));
        for (String name : names) {
            if (ServerBenchmarks.all().stream().noneMatch(part -> part.name().equals(name))) {
                throw new ParameterException(
                        spec.commandLine(), "kvcache bench: --part is '" + name + "', must be one of: " + known);
            }
        }
        return ServerBenchmarks.all().stream()
                .filter(part -> names.isEmpty() || names.contains(part.name()))
                .toList();
    }

    private int report(List<BenchResult> answers) throws IOException {
        BenchmarkSuite suite = new BenchmarkSuite(
                "server",
                "the cache server beside redis-server",
                answers.stream().map(BenchResult::spec).toList());
        PrintWriter out = spec.commandLine().getOut();
        out.print(
                (json ? new BenchReportFormat.JsonLines() : new BenchReportFormat.TextTable()).format(suite, answers));
        out.flush();
        if (recorded) {
            printError("recorded in " + BenchResultWriter.write(spec, suite, answers));
        }
        return strict && !answers.stream().allMatch(BenchResult::isWithinThreshold) ? 1 : 0;
    }

    private void printError(String step) {
        PrintWriter errors = spec.commandLine().getErr();
        errors.println("kvcache bench: " + step);
        errors.flush();
    }
}
