package io.kvcache.bench.cli;

import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.SimulatedCache;
import io.kvcache.bench.trace.TraceReader.MalformedLine;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceSource;
import io.kvcache.core.identity.ModelPreset;
import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyFactory;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/// What `replay` was asked for. The static methods turn the options' texts into values; each names the
/// text and what it may be when it is something else.
record ReplayOptions(
        TraceSource trace,
        List<SimulatedCache> replays,
        ReplayCapacities capacities,
        Optional<ModelPreset> model,
        List<BlockCountingRule> rules,
        MalformedLine.Handling malformed) {

    /// Those that are policies of the store.
    static List<PolicyReplay> storePolicy(List<SimulatedCache> replays) {
        return replays.stream()
                .filter(PolicyReplay.class::isInstance)
                .map(PolicyReplay.class::cast)
                .toList();
    }

    /// A policy of the store.
    static EvictionPolicyFactory storePolicy(String name) {
        return EvictionPolicies.find(name).orElseThrow(() -> invalidOption("--policy", name, EvictionPolicies.names()));
    }

    static Optional<ModelPreset> model(String name, boolean needed) {
        String wanted = name.isEmpty() && needed ? "llama-3-8b" : name;
        if (wanted.isEmpty()) {
            return Optional.empty();
        }
        return Optional.of(
                ModelPreset.fromName(wanted).orElseThrow(() -> invalidOption("--model", wanted, modelNames())));
    }

    private static String modelNames() {
        return Arrays.stream(ModelPreset.values()).map(ModelPreset::label).collect(Collectors.joining(", "));
    }

    static List<BlockCountingRule> rules(String name) {
        return switch (name) {
            case "reference" -> List.of(BlockCountingRule.REFERENCE);
            case "full-blocks" -> List.of(BlockCountingRule.FULL_BLOCKS);
            case "both" -> List.of(BlockCountingRule.REFERENCE, BlockCountingRule.FULL_BLOCKS);
            default -> throw invalidOption("--rule", name, "reference, full-blocks, both");
        };
    }

    static BlockCountingRule parseRule(String name) {
        return switch (name) {
            case "reference" -> BlockCountingRule.REFERENCE;
            case "full-blocks" -> BlockCountingRule.FULL_BLOCKS;
            default -> throw invalidOption("--rule", name, "reference, full-blocks");
        };
    }

    static MalformedLine.Handling malformed(String name) {
        return switch (name) {
            case "skip" -> MalformedLine.Handling.SKIP;
            case "refuse" -> MalformedLine.Handling.REFUSE;
            default -> throw invalidOption("--malformed", name, "skip, refuse");
        };
    }

    /// Of `--share`, in percent.
    static double parseShare(double percent) {
        if (!(percent > 0 && percent <= 100)) {
            throw invalidOption("--share", String.valueOf(percent), "above 0 to 100");
        }
        return percent / 100;
    }

    static void checkWarmup(int requests) {
        if (requests < 0) {
            throw invalidOption("--warmup", String.valueOf(requests), "at least 0");
        }
    }

    /// Of a trace that is known: some of its requests have to count.
    static void checkWarmup(int requests, Trace trace) {
        int all = trace.requests().size();
        if (requests >= all) {
            throw invalidOption(
                    "--warmup", String.valueOf(requests), "below the " + all + " requests of " + trace.name());
        }
    }

    /// What an option's text may be when it is something else.
    static IllegalArgumentException invalidOption(String option, String value, String allowed) {
        return new IllegalArgumentException(option + " is '" + value + "', must be: " + allowed);
    }
}
