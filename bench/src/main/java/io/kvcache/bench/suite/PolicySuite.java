package io.kvcache.bench.suite;

import io.kvcache.bench.baseline.PolicyParameter;
import io.kvcache.bench.replay.BeladyReplay;
import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import io.kvcache.bench.suite.JmhRunner.JmhRun;
import io.kvcache.bench.trace.TraceFinder;
import io.kvcache.bench.trace.TraceReader;
import io.kvcache.bench.trace.TraceReader.MalformedLine;
import io.kvcache.bench.trace.TraceSource;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// The cost of the eviction policies with a million blocks, and their hits.
///
/// Hits are counted by the benchmark and divided here; the trace is Mooncake's conversation when it is
/// there, else a generated one.
final class PolicySuite {

    private static final List<EvictionPolicyFactory> HIT_POLICIES =
            List.of(PolicyKind.LRU, PolicyParameter.parse("LFU_DA"), PolicyKind.IMPORTANCE);
    private static final List<String> PERCENTS = List.of("3", "11");

    private static final List<String> TENANTS = List.of("1", "20");

    /// Nothing said, and twelve labels.
    private static final List<String> LABELS = List.of("0", "12");

    private static final String REPLACE = "EvictionBenchmark.replace";

    private PolicySuite() {}

    static BenchmarkSuite suite() {
        List<BenchmarkSpec> questions = new ArrayList<>();
        for (String labels : LABELS) {
            questions.add(cost("touch", labels, "What does a use cost for each block that it touches", 400));
            questions.add(cost("evict", labels, "What does an eviction cost, with the admission in its place", 2000));
        }
        questions.add(new BenchmarkSpec(
                "decline",
                "What does a put cost that importance declines, beside one in whose place something goes?",
                "ns",
                MetricSource.nanosPer("declined", 1, new JmhRun("DeclinedPutBenchmark.put", 1, Map.of())),
                nanos("evicting", "PolicyCostBenchmark.evict", LABELS.getFirst(), PolicyKind.IMPORTANCE),
                new Threshold.AtMost(300)));
        questions.add(new BenchmarkSpec(
                "replace",
                "And one of each, with a use of sixteen blocks after sixteen evictions?",
                "ns",
                replace("importance", PolicyKind.IMPORTANCE),
                replace("LRU", PolicyKind.LRU),
                new Threshold.AtMost(2400)));
        for (String labels : LABELS) {
            TENANTS.forEach(tenants -> questions.add(small(tenants, labels)));
        }
        String trace = new TraceFinder().find("conversation").isPresent() ? "conversation" : "generated:1";
        for (String percent : PERCENTS) {
            HIT_POLICIES.forEach(kind -> questions.add(hitBenchmarks(kind, percent, trace)));
            questions.add(replay(percent, trace));
        }
        return new BenchmarkSuite(
                "policy", "eviction policies: cost with a million blocks, hits on " + trace, questions);
    }

    private static BenchmarkSpec cost(String name, String labels, String text, double budget) {
        return new BenchmarkSpec(
                name + suffix(labels),
                text + (labelled(labels) ? " with twelve labels?" : "?"),
                "ns",
                nanos("importance", "PolicyCostBenchmark." + name, labels, PolicyKind.IMPORTANCE),
                nanos("LRU", "PolicyCostBenchmark." + name, labels, PolicyKind.LRU),
                new Threshold.AtMost(budget));
    }

    private static BenchmarkSpec small(String tenants, String labels) {
        return new BenchmarkSpec(
                "touch-small-" + tenants + suffix(labels),
                "What does a use cost for each block where " + tenants + " tenants have 2,000 blocks each"
                        + (labelled(labels) ? ", with twelve labels?" : "?"),
                "ns",
                small("importance", tenants, labels, PolicyKind.IMPORTANCE),
                small("LRU", tenants, labels, PolicyKind.LRU),
                new Threshold.AtMost(400));
    }

    private static String suffix(String labels) {
        return labelled(labels) ? "-labelled" : "";
    }

    private static boolean labelled(String labels) {
        return !labels.equals("0");
    }

    private static MetricSource small(String title, String tenants, String labels, EvictionPolicyFactory kind) {
        Map<String, String> parameters =
                Map.of("kind", PolicyParameter.format(kind), "tenants", tenants, "labels", labels);
        return MetricSource.nanosPer(title, 1, new JmhRun("SmallStoreBenchmark.touch", 1, parameters));
    }

    private static MetricSource nanos(String title, String benchmark, String labels, EvictionPolicyFactory kind) {
        return MetricSource.nanosPer(
                title, 1, new JmhRun(benchmark, 1, Map.of("kind", PolicyParameter.format(kind), "labels", labels)));
    }

    private static MetricSource replace(String title, EvictionPolicyFactory kind) {
        return MetricSource.nanosPer(
                title, 1, new JmhRun(REPLACE, 1, Map.of("kind", PolicyParameter.format(kind), "chainLength", "16")));
    }

    private static BenchmarkSpec hitBenchmarks(EvictionPolicyFactory kind, String percent, String trace) {
        return new BenchmarkSpec(
                "hits-" + kind.commandName() + "-" + percent,
                "What share of the blocks does " + kind.commandName() + " find with room for " + percent + " %?",
                "%",
                new MetricSource.JmhMetric(
                        kind.title(), hits(kind, percent, trace), sample -> 100 * sample.ratio("hits", "accesses")),
                new MetricSource.ConstantMetric("Belady with bypass", () -> 100 * bound(percent, trace)),
                new Threshold.NoThreshold());
    }

    private static BenchmarkSpec replay(String percent, String trace) {
        return new BenchmarkSpec(
                "replay-" + percent,
                "And what does a replay take for each block looked up, all in, with importance?",
                "ns",
                perBlock("importance", hits(PolicyKind.IMPORTANCE, percent, trace)),
                perBlock("LRU", hits(PolicyKind.LRU, percent, trace)),
                new Threshold.AtMost(400));
    }

    /// The counters are of all iterations, so they are divided by how many there were.
    private static MetricSource perBlock(String title, JmhRun jmhRun) {
        return new MetricSource.JmhMetric(
                title,
                jmhRun,
                sample -> sample.nanos() * sample.iterations() / sample.events().getOrDefault("accesses", 1.0));
    }

    private static JmhRun hits(EvictionPolicyFactory kind, String percent, String trace) {
        return new JmhRun(
                "PrefixHitRateBenchmark.replay",
                1,
                Map.of("policy", kind.commandName(), "blocks", percent + "%", "trace", trace));
    }

    private static double bound(String percent, String trace) {
        try {
            TraceReader reader = new TraceReader(MalformedLine.Handling.REFUSE, _ -> {});
            PrefixForest forest = new PrefixForest(TraceSource.parse(trace).load(reader), BlockCountingRule.REFERENCE);
            int blocks = (int) Math.max(1, Math.round(Double.parseDouble(percent) / 100 * forest.nodeCount()));
            return new BeladyReplay(true).run(forest, blocks, 0).blockHitRatio();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
