package io.kvcache.bench.transport;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import io.kvcache.bench.Median;
import io.kvcache.bench.transport.TransferMeter.TransferStats;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;

/// A client that moves blocks, and the server process at the other end.
///
/// @param server the caller closes it
public record TransferEndpoint(TransferClient client, PeerProcess server) {

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

    /// The process that a contestant talks to.
    interface PeerProcess {

        /// Processor time that it has used, all threads together.
        Duration processorTime();

        /// Heap bytes that it has allocated; 0 of one without a heap.
        long allocatedBytes() throws IOException;

        /// One of which nothing is known but its number.
        static PeerProcess ofProcess(ProcessHandle process) {
            return new PeerProcess() {
                @Override
                public Duration processorTime() {
                    return process.info().totalCpuDuration().orElse(Duration.ZERO);
                }

                @Override
                public long allocatedBytes() {
                    return 0;
                }
            };
        }
    }

    /// The cost of a transfer beside time.
    ///
    /// @param processorSeconds of both processes together, for each 10^9 bytes
    /// @param heapBytes that this process allocates for each block
    /// @param serverHeapBytes that the other one does
    public record ResourceUsage(double processorSeconds, double heapBytes, double serverHeapBytes) {

        /// The medians of each figure.
        static ResourceUsage median(List<ResourceUsage> all) {
            return new ResourceUsage(
                    Median.of(all, ResourceUsage::processorSeconds),
                    Median.of(all, ResourceUsage::heapBytes),
                    Median.of(all, ResourceUsage::serverHeapBytes));
        }
    }

    /// A client that moves blocks between this process and the server's.
    interface TransferClient extends AutoCloseable {

        /// Moves one block to the server or from it.
        ///
        /// @param number of the move, counted over all threads
        /// @return whether it was moved, whole
        boolean transfer(TransferSpec transferSpec, long number) throws IOException, InterruptedException;

        /// Runs before each move. Its time does not count.
        default void beforeTransfer() {}

        @Override
        void close() throws IOException;
    }
}
