package io.kvcache.bench.transport;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.time.Duration;

/// Who moves blocks, and the process that he moves them to and from.
///
/// @param server its caller's
record Side(Contestant by, OtherSide server) {

    private static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    /// How fast it was, and what it took.
    record Round(Moves moves, Cost cost) {}

    /// Moves blocks for a while.
    Round move(Cargo cargo, Duration time) throws IOException, InterruptedException {
        long processor = processorNanos();
        long heap = THREADS.getTotalThreadAllocatedBytes();
        long serverHeap = server.allocatedBytes();
        Moves moves = Meter.move(by, cargo, time);
        double blocks = (double) moves.count() * cargo.operation().blocks();
        double spentNanos = processorNanos() - processor;
        return new Round(
                moves,
                new Cost(
                        spentNanos / (blocks * cargo.bytes()),
                        (THREADS.getTotalThreadAllocatedBytes() - heap) / blocks,
                        (server.allocatedBytes() - serverHeap) / blocks));
    }

    private long processorNanos() {
        return PROCESS.getProcessCpuTime() + server.processorTime().toNanos();
    }
}
