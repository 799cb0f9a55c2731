package io.kvcache.bench.transport;

import java.util.List;

/// What moving takes beside time.
///
/// @param processorSeconds of both processes together, for each 10^9 bytes
/// @param heapBytes that this process allocates for each block
/// @param serverHeapBytes that the other one does
public record ResourceUsage(double processorSeconds, double heapBytes, double serverHeapBytes) {

    /// The medians of each figure.
    static ResourceUsage median(List<ResourceUsage> all) {
        return new ResourceUsage(
                TransferMeter.median(all, ResourceUsage::processorSeconds),
                TransferMeter.median(all, ResourceUsage::heapBytes),
                TransferMeter.median(all, ResourceUsage::serverHeapBytes));
    }
}
