package io.kvcache.bench.server;

import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.Suite;
import io.kvcache.server.doctor.ProcessRunner;
import io.kvcache.server.doctor.ProcessRunner.ProcessOutput;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// What a newcomer measures first: Debian's redis-benchmark on this server and on redis-server in turn.
///
/// - Small values: 100,000 random keys over 50 connections, in pipelines of 1, 16 and 100.
/// - Large values: 64 KiB to 32 MiB over 1, 2 and 8 connections, and the processor time that the servers take for
///   them. 32 MiB is not part of the means.
///
/// redis-benchmark has one thread, which takes half of a machine with two cores.
final class RedisBenchmark {

    private static final Path PROGRAM = Path.of("/usr/bin/redis-benchmark");

    /// It waits forever for a server that has ended.
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    /// Our server evicts at 65,536 keys in each GiB, however small they are.
    private static final long HOST_BYTES = 4L << 30;

    private static final List<Integer> SMALL_SIZES = List.of(3, 512);
    private static final int SMALL_CONNECTIONS = 50;
    private static final int SMALL_KEYS = 100_000;
    private static final List<Integer> PIPELINES = List.of(1, 16, 100);
    private static final List<Integer> LARGE_SIZES = List.of(64 << 10, 256 << 10, 1 << 20, 4 << 20, 32 << 20);
    private static final List<Integer> LARGE_CONNECTIONS = List.of(1, 2, 8);
    private static final int MAX_MEAN_BYTES = 4 << 20;

    /// Small runs are short, so their medians need more rounds.
    private static final int SMALL_ROUNDS = 7;

    private static final int LARGE_ROUNDS = 5;

    /// The kernel counts a process's time in hundredths of a second.
    private static final double CLOCK_TICK_SECONDS = 0.01;

    private final Path program;

    RedisBenchmark() {
        this(PROGRAM);
    }

    /// @param program redis-benchmark
    RedisBenchmark(Path program) {
        this.program = program;
    }

    /// A run of the program.
    ///
    /// @param name of its figure
    /// @param keys random ones of so many
    /// @param pipeline requests that a connection sends at once
    /// @param requests of all connections together
    private record ToolRun(String name, RespLoad values, int keys, int pipeline, long requests) {

        /// Bytes of values that a run of large ones moves: a second or less.
        private static final int LARGE_RUN_BYTES = 1 << 30;

        /// One for each of eight connections.
        private static final int MIN_REQUESTS = 8;

        static ToolRun ofSmall(RespLoad values, int pipeline) {
            String name = "newcomer-" + operation(values) + "-" + values.size() + "-p" + pipeline;
            return new ToolRun(name, values, SMALL_KEYS, pipeline, pipeline == 1 ? 60_000 : 500_000);
        }

        static ToolRun ofLarge(RespLoad values) {
            return new ToolRun(
                    "newcomer-" + values.name(), values, values.keyCount(), 1, LARGE_RUN_BYTES / values.bytes());
        }

        /// Returns as much of this run as fits a time, where all of it is for a second.
        ToolRun within(Duration time) {
            long fitting = requests * time.toMillis() / 1000;
            return new ToolRun(name, values, keys, pipeline, Math.max(MIN_REQUESTS, fitting));
        }

        double gigabytes() {
            return requests * values.bytes() / 1e9;
        }

        static String operation(RespLoad values) {
            return values.operation().name().toLowerCase(Locale.ROOT);
        }
    }

    /// Small and large values, each on servers that were just started, so that they leave each other's memory
    /// alone.
    ///
    /// @throws IOException when the program or redis-server is not installed, or one of them fails
    List<Figure> measure(Suite.Run run) throws IOException, InterruptedException {
        if (!Files.isExecutable(program)) {
            throw new IOException(program + " is not installed; apt-get install redis-tools");
        }
        long hostBytes = ServerSuite.hostBytes(run, HOST_BYTES);
        List<Figure> figures = new ArrayList<>();
        try (ServerProcess redis = ServerProcess.startRedis(hostBytes);
                ServerProcess ours = ServerProcess.startCurrent(hostBytes)) {
            figures.addAll(small(run, List.of(ours, redis)));
        }
        try (ServerProcess redis = ServerProcess.startRedis(hostBytes);
                ServerProcess ours = ServerProcess.startCurrent(hostBytes)) {
            figures.addAll(large(run, List.of(ours, redis)));
        }
        return figures;
    }

    private List<Figure> small(Suite.Run run, List<ServerProcess> both) throws IOException {
        List<Figure> figures = new ArrayList<>();
        for (int bytes : SMALL_SIZES) {
            List<ToolRun> runs = new ArrayList<>();
            for (int pipeline : PIPELINES) {
                RespLoad.ofValues(bytes, List.of(SMALL_CONNECTIONS))
                        .reversed()
                        .forEach(values ->
                                runs.add(ToolRun.ofSmall(values, pipeline).within(ServerSuite.time(run))));
            }
            run.progress().accept("warming both by redis-benchmark, " + bytes + " bytes");
            for (ServerProcess server : both) {
                RespLoad.fill(server.port(), bytes, SMALL_KEYS);
                for (ToolRun each : runs) {
                    ask(each.within(Duration.ofSeconds(2)), server);
                }
            }
            for (ToolRun each : runs) {
                figures.add(compare(run, each, SMALL_ROUNDS, both, new double[2]));
            }
        }
        return figures;
    }

    private List<Figure> large(Suite.Run run, List<ServerProcess> both) throws IOException, InterruptedException {
        ServerSuite.warmUp(run, both);
        List<Figure> figures = new ArrayList<>();
        List<Figure> means = new ArrayList<>();
        List<Figure> processor = new ArrayList<>();
        for (int bytes : LARGE_SIZES) {
            for (ServerProcess server : both) {
                new RespLoad(RespLoad.Operation.SET, bytes, 1).fill(server.port());
            }
            for (RespLoad values : RespLoad.ofValues(bytes, LARGE_CONNECTIONS)) {
                double[] seconds = new double[2];
                ToolRun each = ToolRun.ofLarge(values).within(ServerSuite.time(run));
                Figure speed = compare(run, each, LARGE_ROUNDS, both, seconds);
                figures.add(speed);
                if (bytes <= MAX_MEAN_BYTES) {
                    means.add(speed);
                    double gigabytes = each.gigabytes() * run.rounds(LARGE_ROUNDS);
                    double[] own = {Math.max(CLOCK_TICK_SECONDS, seconds[0]) / gigabytes};
                    double[] other = {Math.max(CLOCK_TICK_SECONDS, seconds[1]) / gigabytes};
                    processor.add(Figure.of("", "s/GB", own, both.getLast().name(), other));
                }
            }
        }
        String theirs = both.getLast().name();
        figures.add(Figure.meanRatio("newcomer-mean", theirs, means));
        figures.add(Figure.of(
                "newcomer-cpu",
                "s/GB",
                new double[] {Figure.geometricMean(processor, Figure::value)},
                theirs,
                new double[] {Figure.geometricMean(processor, Figure::reference)}));
        return figures;
    }

    /// Puts a load on both servers in turn, each first in every second round, once before that unmeasured.
    ///
    /// @param seconds processor time of each server's rounds is added here
    private Figure compare(Suite.Run run, ToolRun load, int full, List<ServerProcess> both, double[] seconds)
            throws IOException {
        run.progress().accept("redis-benchmark: " + load.name);
        int rounds = run.rounds(full);
        boolean small = load.values.bytes() < 1 << 10;
        double[][] speeds = new double[2][rounds];
        for (int round = -1; round < rounds; round++) {
            for (int turn = 0; turn < 2; turn++) {
                int i = round % 2 == 0 ? turn : 1 - turn;
                Duration before = both.get(i).processorTime();
                double perSecond = ask(load, both.get(i));
                if (round >= 0) {
                    seconds[i] += both.get(i).processorTime().minus(before).toNanos() / 1e9;
                    speeds[i][round] = small ? perSecond / 1e3 : perSecond * load.values.bytes() / 1e9;
                }
            }
        }
        return Figure.of(
                load.name,
                small ? "thousand/s" : "GB/s",
                speeds[0],
                both.getLast().name(),
                speeds[1]);
    }

    /// Runs the program once.
    ///
    /// @return requests a second
    /// @throws IOException when it does not end, or prints something else than is known
    private double ask(ToolRun load, ServerProcess server) throws IOException {
        String operation = ToolRun.operation(load.values);
        List<String> command = List.of(
                program.toString(),
                "-p",
                Integer.toString(server.port()),
                "-t",
                operation,
                "-d",
                Integer.toString(load.values.bytes()),
                "-r",
                Integer.toString(load.keys),
                "-c",
                Integer.toString(load.values.connections()),
                "-P",
                Integer.toString(load.pipeline),
                "-n",
                Long.toString(load.requests),
                "--csv");
        ProcessOutput output = ProcessRunner.run(TIMEOUT, new ProcessBuilder(command).redirectErrorStream(true));
        if (!output.isFinished()) {
            throw new IOException(program + " did not end within " + TIMEOUT.toSeconds() + " s at " + server.name()
                    + ", " + load.name);
        }
        String wanted = '"' + operation.toUpperCase(Locale.ROOT) + '"';
        for (String line : output.text().split("\n", -1)) {
            String[] fields = line.split(",", -1);
            if (fields.length > 1 && fields[0].equals(wanted)) {
                return Double.parseDouble(fields[1].replace("\"", ""));
            }
        }
        throw new IOException(program + " printed no line for " + operation + ": " + output.text());
    }
}
