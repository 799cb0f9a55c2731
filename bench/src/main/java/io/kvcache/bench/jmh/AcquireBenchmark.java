package io.kvcache.bench.jmh;

import io.kvcache.bench.jmh.BenchChains.RandomIndexes;
import io.kvcache.core.BlockTable;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;

/// What does it cost to take and give back the table of a resident chain of 8,192 blocks?
///
/// Budget: 500 ns for both, unchecked. `./kvcache bench core --filter acquire`
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class AcquireBenchmark {

    /// Tables in an invocation: as many as a touch ring holds, so that draining it is in every one.
    public static final int BATCH = 256;

    @Benchmark
    public long acquire(ResidentCache state, RandomIndexes random) {
        long blocks = 0;
        for (int i = 0; i < BATCH; i++) {
            try (BlockTable table =
                    state.cache.acquire(state.residentChains[random.next(state.residentChains.length, blocks)])) {
                blocks += table.readyBlocks();
            }
        }
        return blocks;
    }
}
