package io.kvcache.bench.cli;

import io.kvcache.bench.cli.FigureOptions.DurationConverter;
import io.kvcache.bench.cluster.ClientTransport;
import io.kvcache.bench.cluster.ClusterComparison;
import io.kvcache.bench.cluster.ClusterCosts;
import io.kvcache.bench.cluster.ClusterReplay;
import io.kvcache.bench.cluster.ClusterTrial;
import io.kvcache.bench.cluster.ClusterTrial.TrialScenario;
import io.kvcache.bench.figure.Figure;
import io.kvcache.planner.cli.CommandIo;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.report.MachineInfo;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceFinder;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.server.cli.ByteSizeText;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `kvcache bench cluster`: what clients of a cluster lose when servers die, stop, leave, join or restart.
@Command(
        name = "cluster",
        description = {
            "Replay a trace through a cluster of server processes on this host, undisturbed and while servers die,",
            "stop, leave, join and restart, and compare the two."
        },
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class ClusterBenchCommand implements Callable<Integer> {

    private static final String ALL = "all";
    private static final String DEFAULT_TRACE = "conversation";
    private static final int MAX_SERVERS = 16;
    private static final int MAX_CLIENTS = 64;
    private static final int QUICK_REQUESTS = 1_200;
    private static final int QUICK_RATE = 60;
    private static final int ROUNDS = 3;
    private static final int COST_ROUNDS = 21;

    @Option(
            names = "--scenario",
            paramLabel = "NAME",
            split = ",",
            defaultValue = ALL,
            description = "kill, restart, rolling, drain, join, stop, or all. Default: ${DEFAULT-VALUE}.")
    private List<String> names = List.of();

    @Option(
            names = "--nodes",
            paramLabel = "N",
            defaultValue = "5",
            description = "Servers. Default: ${DEFAULT-VALUE}.")
    private int servers;

    @Option(
            names = "--clients",
            paramLabel = "N",
            defaultValue = "4",
            description = "Threads, each with a client of its own. Default: ${DEFAULT-VALUE}.")
    private int clients;

    @Option(
            names = "--trace",
            paramLabel = "TRACE",
            defaultValue = "",
            description = "As replay takes it. Default: conversation when it is found, else generated.")
    private String trace = "";

    @Option(
            names = "--requests",
            paramLabel = "N",
            defaultValue = "6000",
            description = "The first of the trace. Default: ${DEFAULT-VALUE}, or 1200 with --quick.")
    private int requests;

    @Option(
            names = "--rate",
            paramLabel = "N",
            defaultValue = "100",
            description = "Requests a second, or 0 for as many as there can be; half of it for rolling. Default:"
                    + " ${DEFAULT-VALUE}, or 60 with --quick.")
    private double rate;

    @Option(
            names = "--bytes",
            paramLabel = "SIZE",
            defaultValue = "4KiB",
            description = "Bytes of a block. Default: ${DEFAULT-VALUE}.")
    private String bytes = "";

    @Option(
            names = "--host-bytes",
            paramLabel = "SIZE",
            defaultValue = "384MiB",
            description = "Memory of each server. Default: ${DEFAULT-VALUE}.")
    private String hostBytes = "";

    @Option(
            names = "--rounds",
            paramLabel = "N",
            defaultValue = "" + ROUNDS,
            description = "Rounds, each with other places of blocks. Default: ${DEFAULT-VALUE}, or 1 with --quick.")
    private int rounds;

    @Option(
            names = "--delay",
            paramLabel = "TIME",
            converter = DurationConverter.class,
            defaultValue = "2s",
            description = "How long a server that is told to end answers the others, their shutdown.delay. Default:"
                    + " ${DEFAULT-VALUE}.")
    private Duration delay = Duration.ZERO;

    @Option(
            names = "--shared-memory",
            description = "Let clients read the servers' memory in place, as they do on one host.")
    private boolean sharedMemory;

    @Option(names = "--aeron", description = "Let clients reach the servers by Aeron's UDP in place of TCP.")
    private boolean aeron;

    @Option(
            names = "--replicas",
            paramLabel = "POLICY",
            defaultValue = "heat",
            description = "Which groups of blocks have copies, cluster.replicas of the servers: none, heat or reused."
                    + " Default: ${DEFAULT-VALUE}.")
    private String replicas = "";

    @Option(
            names = "--costs",
            description =
                    "Measure what a cluster costs when nothing happens, instead: a get through it beside one from a"
                            + " single server, and a value that a server passes on.")
    private boolean costs;

    @Mixin
    private final FigureOptions options = new FigureOptions();

    @Override
    public Integer call() throws IOException, InterruptedException {
        CommandIo io = options.io();
        if (costs) {
            return reportCosts(io);
        }
        List<TrialScenario> scenarios = io.check(this::scenarios);
        ClusterReplay.Settings replay = io.check(this::replay);
        long memory = io.check(() -> ByteSizeText.parse(hostBytes).bytes());
        ReplicaPolicy policy = io.check(this::replicaPolicy);
        ClusterTrial trial = new ClusterTrial(forest(), replay, servers, memory, delay, policy);
        io.printError("load " + MachineInfo.current().load());
        int times = or("--rounds", rounds, 1);
        List<Figure> figures = new ClusterComparison(trial, times, io::printError).run(scenarios);
        io.printError("load " + MachineInfo.current().load() + " at the end");
        return options.print("cluster", "a cluster of servers, undisturbed and disturbed", figures);
    }

    private int reportCosts(CommandIo io) throws IOException, InterruptedException {
        int times = io.isGiven("--rounds") ? rounds : options.isQuick() ? ROUNDS : COST_ROUNDS;
        io.printError("load " + MachineInfo.current().load());
        List<Figure> figures = new ClusterCosts(times, io::printError).run();
        io.printError("load " + MachineInfo.current().load() + " at the end");
        return options.print("cluster-costs", "what a cluster costs when nothing happens", figures);
    }

    private List<TrialScenario> scenarios() {
        List<String> allowed = Arrays.stream(TrialScenario.values())
                .map(TrialScenario::commandName)
                .toList();
        for (String name : names) {
            if (!name.equals(ALL) && !allowed.contains(name)) {
                throw new IllegalArgumentException(
                        "--scenario is '" + name + "', must be one of: " + TrialScenario.names() + ", " + ALL);
            }
        }
        return Arrays.stream(TrialScenario.values())
                .filter(scenario -> names.contains(ALL) || names.contains(scenario.commandName()))
                .toList();
    }

    private ClusterReplay.Settings replay() {
        require("--nodes", servers, 2, MAX_SERVERS);
        require("--clients", clients, 1, MAX_CLIENTS);
        require("--requests", requests, 1, Integer.MAX_VALUE);
        require("--rounds", rounds, 1, Integer.MAX_VALUE);
        if (rate < 0) {
            throw new IllegalArgumentException("--rate is " + rate + ", must be 0 or more");
        }
        long blockBytes = ByteSizeText.parse(bytes).bytes();
        require("--bytes", blockBytes, 1, 1 << 20);
        return new ClusterReplay.Settings(clients, or("--rate", rate, QUICK_RATE), (int) blockBytes, transport());
    }

    private ReplicaPolicy replicaPolicy() {
        return Arrays.stream(ReplicaPolicy.values())
                .filter(policy -> policy.name().toLowerCase(Locale.ROOT).equals(replicas))
                .findAny()
                .orElseThrow(() -> new IllegalArgumentException(
                        "--replicas is '" + replicas + "', must be one of: none, heat, reused"));
    }

    private ClientTransport transport() {
        if (sharedMemory && aeron) {
            throw new IllegalArgumentException("--shared-memory and --aeron exclude each other");
        }
        return sharedMemory ? ClientTransport.SHARED_MEMORY : aeron ? ClientTransport.AERON : ClientTransport.TCP;
    }

    private static void require(String option, long value, long least, long most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(option + " is " + value + ", must be " + least + " to " + most);
        }
    }

    /// Returns what an option says, or another value for a quick run where it was not typed.
    private double or(String option, double value, double quick) {
        return options.isQuick() && !options.io().isGiven(option) ? quick : value;
    }

    private int or(String option, int value, int quick) {
        return options.isQuick() && !options.io().isGiven(option) ? quick : value;
    }

    private PrefixForest forest() throws IOException {
        TraceReader reader = new TraceReader(
                MalformedLine.Handling.SKIP,
                line -> options.io().printError("skipped line " + line.number() + ": " + line.reason()));
        String source = trace.isEmpty() ? defaultTrace() : trace;
        TraceSource from = options.io().check(() -> TraceSource.parse(source));
        Trace read = from.load(reader).firstRequests(or("--requests", requests, QUICK_REQUESTS));
        return new PrefixForest(read, BlockCountingRule.FULL_BLOCKS);
    }

    private static String defaultTrace() {
        return new TraceFinder().find(DEFAULT_TRACE).isPresent() ? DEFAULT_TRACE : "generated";
    }
}
