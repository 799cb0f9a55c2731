package io.kvcache.planner.cli;

import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.planner.cli.PlanningOptions.FormatOption;
import io.kvcache.planner.cli.PlanningOptions.ModelOption;
import io.kvcache.planner.cli.PlanningOptions.PolicyOptions;
import io.kvcache.planner.cli.PlanningOptions.SeedsOption;
import io.kvcache.planner.cli.PlanningOptions.TraceOption;
import io.kvcache.planner.lab.StateReplay;
import io.kvcache.planner.lab.StateReplay.StatePolicy;
import io.kvcache.planner.model.ModelCatalogue;
import io.kvcache.planner.model.ModelProfile;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.report.Column;
import io.kvcache.planner.report.ResultRow;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.server.cli.ByteSizeText;
import io.kvcache.server.cli.ProgressLine;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// `kvcache lab states`: where a hybrid model's recurrent states are worth their memory.
@Command(
        name = "states",
        description = "Compare where the recurrent states of a hybrid model are kept: token hit ratios by capacity of"
                + " the store's memory for KV blocks and states.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class StateLabCommand implements Callable<Integer> {

    @Mixin
    private final CommandIo io = new CommandIo();

    @Mixin
    private final TraceOption trace = new TraceOption();

    @Mixin
    private final ModelOption model = new ModelOption();

    @Option(
            names = "--state-bytes",
            paramLabel = "SIZE",
            description = "Recurrent states of one sequence, in place of those of --model.")
    private String stateBytes = "";

    @Option(
            names = "--capacity",
            paramLabel = "SIZE",
            split = ",",
            defaultValue = "64GiB,256GiB,1TiB",
            description = "Memory for blocks and states together. Default: ${DEFAULT-VALUE}.")
    private List<String> capacities = new ArrayList<>();

    @Option(
            names = "--states",
            paramLabel = "WHERE",
            split = ",",
            description = "Where states are kept: bound (in each block), block (at each block, evicted alone), free"
                    + " (at each block at no cost), or ends (of prompts), branches (where found blocks end without"
                    + " a state) and every:TOKENS joined by +. Default: eight of these.")
    private List<String> states = new ArrayList<>();

    @Mixin
    private final PolicyOptions eviction = new PolicyOptions();

    @Mixin
    private final FormatOption format = new FormatOption();

    @Mixin
    private final SeedsOption seeds = new SeedsOption();

    private static final List<Column> COLUMNS = List.of(
            Column.key("states", 26),
            Column.key("policy", 11),
            Column.key("capacityBytes"),
            Column.percent("token hits", "tokenHitRatio"));

    private static final List<String> DEFAULT_EVICTIONS = List.of("lru", "importance");

    private record StateLabOptions(
            List<TraceSource> sources,
            ModelProfile model,
            long stateBytes,
            List<ByteSizeText> capacities,
            List<StatePolicy> policies,
            List<EvictionPolicyFactory> evictions) {}

    @Override
    public Integer call() throws IOException {
        StateLabOptions options = options();
        model.printRemarks(io.err());
        PlanningRows rows = new PlanningRows(io, new RowPrinter(io, format.format()), options.sources, COLUMNS);
        rows.forEachTrace((trace, _, progressLine) -> run(options, trace, rows, progressLine));
        return 0;
    }

    private void run(StateLabOptions options, Trace read, PlanningRows rows, ProgressLine progressLine) {
        StateReplay replay = new StateReplay(read, options.model.kvBytesPerToken(), options.stateBytes);
        io.check(() -> checked(options, read, replay));
        rows.head(
                "%s: token hits of %s; a block of %d tokens takes %s, a state %s (as much as %,.0f tokens)",
                read.name(),
                options.model.label(),
                read.blockTokens(),
                new ByteSizeText(read.blockBytes(options.model.kvBytesPerToken())),
                new ByteSizeText(options.stateBytes),
                (double) options.stateBytes / options.model.kvBytesPerToken());
        for (StatePolicy policy : options.policies) {
            progressLine.update("replaying " + policy.name());
            List<ResultRow> found = options.evictions.stream()
                    .flatMap(eviction ->
                            options.capacities.stream().map(capacity -> replay.run(policy, eviction, capacity.bytes())))
                    .toList();
            progressLine.update("");
            found.forEach(row -> rows.add(row.put("model", options.model.label())
                    .put("blockTokens", read.blockTokens())
                    .put("stateBytes", options.stateBytes)));
        }
    }

    private StateLabOptions options() {
        return io.check(() -> {
            format.format();
            ModelProfile profile = model.profile();
            long bytes = stateBytes.isEmpty()
                    ? profile.stateBytes()
                    : ByteSizeText.parse(stateBytes).bytes();
            if (bytes == 0) {
                throw PlanningOptions.invalidOption(
                        "--model",
                        profile.label(),
                        "one with recurrent states (" + ModelCatalogue.recurrentNames() + "), or given with"
                                + " --state-bytes");
            }
            return new StateLabOptions(
                    seeds.sources(trace.traceSource()),
                    profile,
                    bytes,
                    capacities.stream().map(ByteSizeText::parse).toList(),
                    (states.isEmpty() ? StatePolicy.DEFAULTS : states)
                            .stream().map(StateLabCommand::policy).toList(),
                    eviction.replays(DEFAULT_EVICTIONS).stream()
                            .map(StateLabCommand::ofStore)
                            .toList());
        });
    }

    private static EvictionPolicyFactory ofStore(SimulatedCache policy) {
        if (policy instanceof PolicyReplay own) {
            return own.kind();
        }
        throw PlanningOptions.invalidOption("--policy", policy.commandName(), "a policy that the store runs");
    }

    private static StatePolicy policy(String name) {
        return StatePolicy.named(name)
                .orElseThrow(() -> PlanningOptions.invalidOption("--states", name, StatePolicy.FORMS));
    }

    /// The tokens of a block of a file are known only after it has been read.
    private static StateLabOptions checked(StateLabOptions options, Trace read, StateReplay replay) {
        for (StatePolicy policy : options.policies) {
            if (!policy.fits(read.blockTokens())) {
                throw PlanningOptions.invalidOption(
                        "--states",
                        policy.name(),
                        "multiples of the " + read.blockTokens() + " tokens of a block of " + read.name());
            }
        }
        for (ByteSizeText capacity : options.capacities) {
            if (capacity.bytes() < replay.minCapacityBytes()) {
                throw PlanningOptions.invalidOption(
                        "--capacity",
                        capacity.toString(),
                        "at least " + new ByteSizeText(replay.minCapacityBytes()) + ", for a block and a state");
            }
        }
        return options;
    }
}
