package io.kvcache.bench.baseline;

import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyFactory;
import java.util.Locale;

/// Eviction policies as benchmarks name them.
public final class Baselines {

    /// See [LfuDynamicAging].
    public static final EvictionPolicyFactory LFU_DA = find("lfu-da");

    /// See [S3Fifo].
    public static final EvictionPolicyFactory S3_FIFO = find("s3-fifo");

    private Baselines() {}

    /// The policy of a benchmark's parameter: a name such as `LRU` or `LFU_DA`, or a class as
    /// [EvictionPolicies#ofClass] takes it.
    ///
    /// @throws IllegalArgumentException when there is none
    public static EvictionPolicyFactory ofParameter(String text) {
        if (text.contains(".")) {
            return EvictionPolicies.ofClass(text);
        }
        return EvictionPolicies.find(text.toLowerCase(Locale.ROOT).replace('_', '-'))
                .orElseThrow(() -> new IllegalArgumentException(
                        "policy is '" + text + "', must be a class or: " + EvictionPolicies.names()));
    }

    /// What [#ofParameter] takes for a policy that has a name.
    public static String parameter(EvictionPolicyFactory policy) {
        return policy.commandName().toUpperCase(Locale.ROOT).replace('-', '_');
    }

    private static EvictionPolicyFactory find(String name) {
        return EvictionPolicies.find(name).orElseThrow();
    }
}
