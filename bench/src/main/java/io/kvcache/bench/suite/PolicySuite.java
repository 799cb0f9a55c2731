package io.kvcache.bench.suite;

import io.kvcache.bench.figure.Suite;
import io.kvcache.bench.suite.JmhProcess.JmhRun;
import io.kvcache.bench.suite.JmhSuite.JmhFigure;
import io.kvcache.bench.suite.JmhSuite.Reading;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.baseline.PolicyParameter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// The cost of importance beside LRU with a million blocks: what a use and an eviction take. `lab` compares hits.
public final class PolicySuite {

    /// No labels, and twelve.
    private static final List<String> LABELS = List.of("0", "12");

    private static final List<String> TENANTS = List.of("1", "20");

    private PolicySuite() {}

    public static Suite suite() {
        List<JmhFigure> figures = new ArrayList<>();
        for (String labels : LABELS) {
            figures.add(cost("touch" + suffix(labels), "PolicyCostBenchmark.touch", Map.of("labels", labels)));
            figures.add(cost("evict" + suffix(labels), "PolicyCostBenchmark.evict", Map.of("labels", labels)));
        }
        figures.add(new JmhFigure(
                "decline",
                "ns",
                Reading.nanosPer("declined", 1, JmhRun.of("DeclinedPutBenchmark.put")),
                nanos("evicting", "PolicyCostBenchmark.evict", Map.of("labels", "0"), PolicyKind.IMPORTANCE)));
        figures.add(cost("replace", "EvictionBenchmark.replace", Map.of("chainLength", "16")));
        for (String labels : LABELS) {
            for (String tenants : TENANTS) {
                figures.add(cost(
                        "touch-small-" + tenants + suffix(labels),
                        "SmallStoreBenchmark.touch",
                        Map.of("tenants", tenants, "labels", labels)));
            }
        }
        JmhSuite suite = new JmhSuite(figures);
        return new Suite("policy", "eviction policies with a million blocks", suite.names(), List.of(), suite::measure);
    }

    private static JmhFigure cost(String name, String benchmark, Map<String, String> parameters) {
        return new JmhFigure(
                name,
                "ns",
                nanos("importance", benchmark, parameters, PolicyKind.IMPORTANCE),
                nanos("LRU", benchmark, parameters, PolicyKind.LRU));
    }

    private static Reading nanos(
            String subject, String benchmark, Map<String, String> parameters, EvictionPolicyFactory kind) {
        Map<String, String> all = new HashMap<>(parameters);
        all.put("kind", PolicyParameter.format(kind));
        return Reading.nanosPer(subject, 1, new JmhRun(benchmark, 1, all));
    }

    private static String suffix(String labels) {
        return labels.equals("0") ? "" : "-labelled";
    }
}
