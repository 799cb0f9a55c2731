package io.kvcache.bench.jmh;

import io.kvcache.core.identity.BlockChain;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/// What does the metadata of a put cost in a full store of a million records: reserve, evict another, seal?
///
/// Sequences of 8,192 blocks come in batches of 32 that grow side by side, as an engine writes them; LRU. Budget:
/// 1 µs. `./kvcache bench core --filter evict`
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class EvictBenchmark {

    /// Puts in an invocation: enough to hold a share of every sweep of the policy's heap.
    public static final int BATCH = 1024;

    @Benchmark
    public void put(FullStore state) {
        for (int i = 0; i < BATCH; i++) {
            state.putNext();
        }
    }

    /// A full store and twice as many blocks as it holds, in a circle: what comes next was evicted long ago.
    @State(Scope.Benchmark)
    public static class FullStore {

        private static final int SIDE_BY_SIDE = 32;
        private static final int CHAINS = 8 * SIDE_BY_SIDE;

        private final BlockChain[] chains = BenchChains.of(1, CHAINS);
        private final ResidentStore resident = new ResidentStore();
        private int chain;
        private int index;
        private int group;

        public FullStore() {
            for (int i = 0; i < 2 * ResidentCache.RECORDS; i++) {
                putNext();
            }
        }

        final void putNext() {
            resident.put(chains[group + chain], index);
            chain++;
            if (chain == SIDE_BY_SIDE) {
                chain = 0;
                index++;
                if (index == BenchChains.BLOCKS) {
                    index = 0;
                    group = (group + SIDE_BY_SIDE) % CHAINS;
                }
            }
        }

        @TearDown
        public void close() {
            resident.close();
        }
    }
}
