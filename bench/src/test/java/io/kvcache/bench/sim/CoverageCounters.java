package io.kvcache.bench.sim;

import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;

/// How often something happened that a suite must have seen.
public final class CoverageCounters {

    private final Map<String, Long> counts = new TreeMap<>();

    void count(String what) {
        add(what, 1);
    }

    void countIf(String what, boolean happened) {
        add(what, happened ? 1 : 0);
    }

    void add(String what, long times) {
        if (times > 0) {
            counts.merge(what, times, Long::sum);
        }
    }

    void addAll(CoverageCounters others) {
        others.counts.forEach(this::add);
    }

    /// By name.
    public Map<String, Long> all() {
        return Collections.unmodifiableMap(counts);
    }

    @Override
    public String toString() {
        return counts.toString();
    }
}
