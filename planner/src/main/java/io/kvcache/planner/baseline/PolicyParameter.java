package io.kvcache.planner.baseline;

import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyFactory;
import java.util.Locale;

/// An eviction policy as a JMH parameter: its name in capitals, such as `LRU` or `LFU_DA`, or the name of its class.
public final class PolicyParameter {

    private PolicyParameter() {}

    /// Returns the policy of a parameter: a name on the class path, or a class as [EvictionPolicies#ofClass] takes it.
    ///
    /// @throws IllegalArgumentException if the class path has no such policy
    public static EvictionPolicyFactory parse(String text) {
        if (text.contains(".")) {
            return EvictionPolicies.ofClass(text);
        }
        return EvictionPolicies.find(text.toLowerCase(Locale.ROOT).replace('_', '-'))
                .orElseThrow(() -> new IllegalArgumentException(
                        "policy is '" + text + "', must be a class or: " + EvictionPolicies.names()));
    }

    /// Returns the parameter that [#parse] takes for a named policy.
    public static String format(EvictionPolicyFactory policy) {
        return policy.commandName().toUpperCase(Locale.ROOT).replace('-', '_');
    }
}
