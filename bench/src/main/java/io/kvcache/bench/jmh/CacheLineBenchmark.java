package io.kvcache.bench.jmh;

import io.kvcache.bench.jmh.BenchChains.RandomIndexes;
import io.kvcache.core.spi.HostMemory;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.options.MemoryOptions;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/// What does one read of a random cache line cost here, in as much memory as a million records take?
///
/// The physical limit of every look-up: a reference, without a budget. `./kvcache bench core --filter match`
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class CacheLineBenchmark {

    /// Reads in an invocation, each waiting for the one before.
    public static final int BATCH = 256;

    private static final int LINES = 1 << 20;
    private static final int LINE_BYTES = 64;

    @Benchmark
    public long read(Lines state, RandomIndexes random) {
        long sum = 0;
        for (int i = 0; i < BATCH; i++) {
            long line = random.next(LINES, sum);
            sum += state.memory.segment().get(ValueLayout.JAVA_LONG, line * LINE_BYTES);
        }
        return sum;
    }

    /// Memory of the kind that records lie in.
    @State(Scope.Benchmark)
    public static class Lines {

        final HostMemory memory =
                new MappedMemorySource(MemoryOptions.defaults()).reserve("lines", (long) LINES * LINE_BYTES);

        public Lines() {
            memory.segment().fill((byte) 1);
        }

        @TearDown
        public void close() {
            memory.close();
        }
    }
}
