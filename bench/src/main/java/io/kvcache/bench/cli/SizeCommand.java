package io.kvcache.bench.cli;

import io.kvcache.bench.lab.CapacityPlanner;
import io.kvcache.bench.lab.GpuPreset;
import io.kvcache.bench.lab.RequestRouter.RoutingPolicy;
import io.kvcache.bench.lab.CapacityPlanner.SizingResult;
import io.kvcache.bench.trace.TraceSource;
import io.kvcache.server.cli.ByteSizeText;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import tools.jackson.databind.json.JsonMapper;

/// `kvcache size`: how much memory a hit ratio takes, under LRU and under importance, tier by tier.
@Command(
        name = "size",
        description = "How much memory a hit ratio takes on a trace, by tier; exits with 1 when no memory would do.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class SizeCommand implements Callable<Integer> {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Mixin
    private final TraceOption trace = new TraceOption();

    @Mixin
    private final ModelOption model = new ModelOption();

    @Option(
            names = "--target-hit",
            paramLabel = "RATIO",
            required = true,
            description = "Block hit ratio that is wanted, above 0 to 1.")
    private double target;

    @Option(
            names = "--gpu",
            paramLabel = "NAME",
            defaultValue = "h100",
            description = "What serves the model: a100, h100, h200. Default: ${DEFAULT-VALUE}.")
    private String gpu = "";

    @Option(
            names = "--gpus",
            paramLabel = "N",
            defaultValue = "1",
            description = "How many of them together; their memory less the weights is the first tier."
                    + " Default: ${DEFAULT-VALUE}.")
    private int gpus;

    @Option(
            names = "--host",
            paramLabel = "SIZE",
            defaultValue = "1TiB",
            description = "Host memory that may be taken, the second tier, or 0; what is left goes to disk."
                    + " Default: ${DEFAULT-VALUE}.")
    private String host = "";

    @Option(
            names = "--instances",
            paramLabel = "N",
            defaultValue = "1",
            description = "Also so many instances, 1 to 64, each with an LRU cache of its own, beside one that they"
                    + " share.")
    private int instances;

    @Option(
            names = "--route",
            paramLabel = "RULE",
            split = ",",
            defaultValue = "random,session,prefix",
            description = "How requests come to the instances: random, session, prefix. Default: all three.")
    private List<String> routes = List.of();

    @Option(
            names = "--seed",
            paramLabel = "N",
            defaultValue = "1",
            description = "Of what is random about the routes. Default: ${DEFAULT-VALUE}.")
    private long seed;

    @Option(names = "--json", description = "One JSON object instead of text.")
    private boolean json;

    private record SizeOptions(
            TraceSource source, CapacityPlanner.EngineConfig engine, List<CapacityPlanner.FleetConfig> fleets) {}

    @Override
    public Integer call() throws IOException {
        SizeOptions sizeOptions = sizeOptions();
        CapacityPlanner capacityPlanner = new CapacityPlanner(
                TraceOption.loadTrace(sizeOptions.source, spec.commandLine().getErr()), sizeOptions.engine);
        SizingResult answer = capacityPlanner.plan(target, sizeOptions.fleets);
        PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(JsonMapper.builder().build().writeValueAsString(answer));
        } else {
            new SizingTextReport(out).print(answer, capacityPlanner.computeMillis());
        }
        out.flush();
        return answer.reachable() ? 0 : 1;
    }

    private SizeOptions sizeOptions() {
        try {
            if (!(target > 0 && target <= 1)) {
                throw ReplayOptions.invalidOption("--target-hit", String.valueOf(target), "above 0 to 1");
            }
            if (gpus < 1 || gpus > 1000) {
                throw ReplayOptions.invalidOption("--gpus", String.valueOf(gpus), "1 to 1000");
            }
            CapacityPlanner.EngineConfig engineConfig = new CapacityPlanner.EngineConfig(
                    model.preset(),
                    GpuPreset.named(gpu)
                            .orElseThrow(() -> ReplayOptions.invalidOption("--gpu", gpu, GpuPreset.names())),
                    gpus,
                    hostBytes());
            List<CapacityPlanner.FleetConfig> fleets = routes.stream()
                    .map(SizeCommand::route)
                    .map(routingPolicy -> new CapacityPlanner.FleetConfig(instances, routingPolicy, seed))
                    .toList();
            return new SizeOptions(trace.traceSource(), engineConfig, instances == 1 ? List.of() : fleets);
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "kvcache size: " + e.getMessage(), e);
        }
    }

    private long hostBytes() {
        return host.equals("0") ? 0 : ByteSizeText.parse(host).bytes();
    }

    private static RoutingPolicy route(String name) {
        return RoutingPolicy.named(name)
                .orElseThrow(() -> ReplayOptions.invalidOption("--route", name, RoutingPolicy.names()));
    }
}
