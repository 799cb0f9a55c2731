package io.kvcache.bench.cli;

import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.ReplayCatalogue;
import io.kvcache.bench.replay.SimulatedCache;
import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyFactory;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/// Which policies a trace is replayed against.
final class PolicyOptions {

    @Option(
            names = "--policy",
            paramLabel = "NAME",
            split = ",",
            description = "Policies, separated by commas. Default: all that there are, unless --policy-class is given.")
    private List<String> names = new ArrayList<>();

    @Option(
            names = "--policy-class",
            paramLabel = "CLASS",
            split = ",",
            description = "Also policies of your own, by class: an EvictionPolicy or EvictionPolicyFactory on the class"
                    + " path (KVCACHE_CLASSPATH adds to it). docs/embedding.md shows one.")
    private List<String> classes = new ArrayList<>();

    /// Policies by name, then those by class.
    ///
    /// @param defaults names when neither option is given; all that there are when empty
    /// @throws IllegalArgumentException when there is no such policy
    List<SimulatedCache> replays(List<String> defaults) {
        List<SimulatedCache> all = new ArrayList<>();
        if (!names.isEmpty() || classes.isEmpty()) {
            all.addAll(named(names.isEmpty() ? defaults : names));
        }
        classes.forEach(each -> all.add(new PolicyReplay(ofClass(each))));
        return all;
    }

    private static EvictionPolicyFactory ofClass(String name) {
        try {
            return EvictionPolicies.ofClass(name);
        } catch (IllegalArgumentException wrong) {
            throw new IllegalArgumentException("--policy-class: " + wrong.getMessage(), wrong);
        }
    }

    private static List<SimulatedCache> named(List<String> names) {
        if (names.isEmpty()) {
            return ReplayCatalogue.all();
        }
        return names.stream()
                .map(name -> ReplayCatalogue.named(name)
                        .orElseThrow(() -> ReplayOptions.invalidOption("--policy", name, ReplayCatalogue.names())))
                .toList();
    }

    /// The names that were given.
    List<String> names() {
        return List.copyOf(names);
    }
}
