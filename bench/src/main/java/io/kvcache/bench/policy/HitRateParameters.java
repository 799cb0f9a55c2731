package io.kvcache.bench.policy;

import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.ReplayCatalogue;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceSource;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.stream.Collectors;

/// The parameters of [PrefixHitRateBenchmark] as values.
///
/// Each error names the parameter, its value and what is allowed.
final class HitRateParameters {

    static final String DEFAULT_TRACE = "generated:1";

    private HitRateParameters() {}

    /// Reads or generates a trace. A malformed line is an error.
    ///
    /// @throws IllegalArgumentException when there is no such trace, or its file cannot be read as one
    static Trace trace(String text) {
        try {
            return TraceSource.parse(text).load(new TraceReader(MalformedLine.Handling.REFUSE, _ -> {}));
        } catch (IllegalArgumentException unknown) {
            throw new IllegalArgumentException("trace is '" + text + "': " + unknown.getMessage(), unknown);
        } catch (NoSuchFileException missing) {
            throw new IllegalArgumentException(
                    "trace is '" + text + "': no such file; a trace is " + TraceSource.FORMS, missing);
        } catch (FileSystemException unreadable) {
            throw new IllegalArgumentException("trace is '" + text + "': " + unreadable, unreadable);
        } catch (IOException malformed) {
            throw new IllegalArgumentException("trace is '" + text + "': " + malformed.getMessage(), malformed);
        }
    }

    /// Returns the cache of a name, else a policy by its class.
    ///
    /// @throws IllegalArgumentException when it is neither
    static SimulatedCache policy(String text) {
        Optional<SimulatedCache> named = ReplayCatalogue.named(text);
        if (named.isPresent()) {
            return named.get();
        }
        try {
            return ofClass("policy", text);
        } catch (IllegalArgumentException unknown) {
            if (text.contains(".")) {
                throw unknown;
            }
            throw new IllegalArgumentException(
                    "policy is '" + text + "', must be: " + ReplayCatalogue.names() + ", or a class", unknown);
        }
    }

    /// Returns the policy of a class on the class path or in the working directory.
    ///
    /// @param parameter to name in errors
    /// @throws IllegalArgumentException when there is none, or the class is not a policy
    static SimulatedCache ofClass(String parameter, String className) {
        Path folder = Path.of("").toAbsolutePath();
        try {
            return new PolicyReplay(EvictionPolicies.ofClass(className, classesIn(folder)));
        } catch (IllegalArgumentException wrong) {
            boolean missing = wrong.getCause() instanceof ClassNotFoundException;
            throw new IllegalArgumentException(
                    parameter + " is '" + className + "': " + wrong.getMessage()
                            + (missing ? ", nor in the folder " + folder : ""),
                    wrong);
        }
    }

    /// Never closed, as a policy loads its classes when it needs them.
    private static ClassLoader classesIn(Path folder) {
        try {
            return new URLClassLoader(new URL[] {folder.toUri().toURL()}, HitRateParameters.class.getClassLoader());
        } catch (IOException impossible) {
            throw new IllegalStateException("the folder " + folder + " has no URL", impossible);
        }
    }

    /// @throws IllegalArgumentException when there is no such rule
    static BlockCountingRule rule(String text) {
        return Arrays.stream(BlockCountingRule.values())
                .filter(rule -> rule.commandName().equals(text))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("rule is '" + text + "', must be: "
                        + Arrays.stream(BlockCountingRule.values())
                                .map(BlockCountingRule::commandName)
                                .collect(Collectors.joining(", "))));
    }

    /// A capacity as it was given.
    ///
    /// @param count in blocks, or in percent of a trace's distinct blocks
    record Capacity(double count, boolean inPercent) {

        /// @throws IllegalArgumentException when it is out of range
        static Capacity parse(String text) {
            try {
                if (text.endsWith("%")) {
                    double percent = Double.parseDouble(text.substring(0, text.length() - 1));
                    if (percent > 0 && percent <= 100) {
                        return new Capacity(percent, true);
                    }
                } else {
                    int blocks = Integer.parseInt(text);
                    if (blocks >= 1) {
                        return new Capacity(blocks, false);
                    }
                }
            } catch (NumberFormatException _) {
                // told below, as what is out of range
            }
            throw new IllegalArgumentException("blocks is '" + text + "', must be: 1 to " + Integer.MAX_VALUE
                    + ", or a share of the trace's distinct blocks, above 0% to 100%");
        }

        /// Returns the capacity in blocks, at least 1.
        int of(int distinctBlocks) {
            return (int) (inPercent ? Math.max(1, Math.round(count / 100 * distinctBlocks)) : count);
        }
    }
}
