package io.kvcache.bench.transport;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.time.Duration;

/// Who moves blocks, and the process that he moves them to and from.
///
/// @param server its caller's
record TransferEndpoint(TransferClient client, PeerProcess server) {

    private static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    /// How fast it was, and what it took.
    record RoundResult(TransferStats moves, ResourceUsage cost) {}

    /// Moves blocks for a while.
    RoundResult measure(TransferSpec transferSpec, Duration time) throws IOException, InterruptedException {
        long processor = processorNanos();
        long heap = THREADS.getTotalThreadAllocatedBytes();
        long serverHeap = server.allocatedBytes();
        TransferStats transferStats = TransferMeter.measure(client, transferSpec, time);
        double blocks =
                (double) transferStats.count() * transferSpec.operation().blockCount();
        double spentNanos = processorNanos() - processor;
        return new RoundResult(
                transferStats,
                new ResourceUsage(
                        spentNanos / (blocks * transferSpec.bytes()),
                        (THREADS.getTotalThreadAllocatedBytes() - heap) / blocks,
                        (server.allocatedBytes() - serverHeap) / blocks));
    }

    private long processorNanos() {
        return PROCESS.getProcessCpuTime() + server.processorTime().toNanos();
    }
}
