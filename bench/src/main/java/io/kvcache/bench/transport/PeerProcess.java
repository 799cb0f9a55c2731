package io.kvcache.bench.transport;

import java.io.IOException;
import java.time.Duration;

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
