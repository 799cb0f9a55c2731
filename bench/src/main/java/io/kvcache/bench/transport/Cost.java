package io.kvcache.bench.transport;

import java.util.List;

/// What moving takes beside time.
///
/// @param processorSeconds of both processes together, for each 10^9 bytes
/// @param heapBytes that this process allocates for each block
/// @param serverHeapBytes that the other one does
public record Cost(double processorSeconds, double heapBytes, double serverHeapBytes) {

    /// The medians of each figure.
    static Cost median(List<Cost> all) {
        return new Cost(
                Meter.median(all, Cost::processorSeconds),
                Meter.median(all, Cost::heapBytes),
                Meter.median(all, Cost::serverHeapBytes));
    }
}
