package io.kvcache.bench.suite;

import java.util.Map;

/// What one fork of a benchmark gave.
///
/// @param nanos median time of an invocation, in one thread
/// @param allocatedBytes heap bytes allocated in an invocation, on average
/// @param iterations measured ones
/// @param events what the benchmark counted, summed up over its iterations
public record JmhSample(double nanos, double allocatedBytes, long iterations, Map<String, Double> events) {

    /// Copies the events.
    public JmhSample {
        events = Map.copyOf(events);
    }

    /// One count over another; 0 when there is neither.
    double ratio(String event, String ofEvent) {
        double of = events.getOrDefault(ofEvent, 0.0);
        return of == 0 ? 0 : events.getOrDefault(event, 0.0) / of;
    }
}
