package io.kvcache.bench.cli;

import io.kvcache.bench.server.ServerBenchmark;
import io.kvcache.bench.server.ServerBenchmark.BenchmarkOptions;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.MachineInfo;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `kvcache bench server`: this server and Debian's redis-server in turn on the same cores, under one client with a
/// thread a connection; and what the server takes by itself.
@Command(
        name = "server",
        description = "Compare the server with redis-server (apt-get install redis-server) on this machine.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class ServerBenchCommand implements Callable<Integer> {

    @Option(
            names = "--part",
            paramLabel = "NAME",
            split = ",",
            description = "Only these parts: values, responder, pipeline, newcomer, eviction, allocation, start.")
    private List<String> names = List.of();

    @Option(
            names = "--soak",
            paramLabel = "TIME",
            converter = DurationConverter.class,
            description = "Instead, watch the server's memory for this time, as in 10m, while values come and go.")
    private @Nullable Duration soak;

    @Mixin
    private final SuiteOptions options = new SuiteOptions();

    @Override
    public Integer call() throws IOException, InterruptedException {
        CommandIo io = options.io();
        BenchmarkOptions benchmarkOptions =
                options.isQuick() ? BenchmarkOptions.quick(io::printError) : BenchmarkOptions.full(io::printError);
        List<BenchResult> answers = new ArrayList<>();
        for (ServerBenchmark part : chosen()) {
            io.printError(part.title() + ", load " + MachineInfo.current().load());
            answers.addAll(part.run(benchmarkOptions));
        }
        io.printError("load " + MachineInfo.current().load() + " at the end");
        BenchReport report = BenchReport.of("server", "the cache server beside redis-server", answers);
        return options.reportResults(report.suite(), answers);
    }

    private List<ServerBenchmark> chosen() {
        if (soak != null) {
            return List.of(ServerBenchmark.soak(soak));
        }
        List<ServerBenchmark> all = ServerBenchmark.all();
        for (String name : names) {
            if (all.stream().noneMatch(part -> part.name().equals(name))) {
                throw options.io()
                        .usageError("--part is '" + name + "', must be one of: "
                                + all.stream().map(ServerBenchmark::name).collect(Collectors.joining(", ")));
            }
        }
        return all.stream()
                .filter(part -> names.isEmpty() || names.contains(part.name()))
                .toList();
    }
}
