package io.kvcache.bench.jmh;

import io.kvcache.bench.jmh.BenchChains.RandomIndexes;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.store.RecordLookup;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/// What does it cost to look up every block of a chain of 8,192 in order, as a match without closure would have to?
///
/// Budget: 0.9 of the time of a random line of memory in the same run. `./kvcache bench core --filter walk`
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class WalkBenchmark {

    /// Look-ups in an invocation.
    public static final int BLOCKS = BenchChains.BLOCKS;

    @Benchmark
    public int walk(FilledStore state, RandomIndexes random) {
        BlockChain chain = state.chains[random.next(state.chains.length, 0)];
        RecordLookup lookup = state.resident.store.lookup();
        return lookup.walk(chain, BLOCKS);
    }

    /// A million records, all resident.
    @State(Scope.Benchmark)
    public static class FilledStore {

        final BlockChain[] chains = BenchChains.of(1, ResidentCache.CHAINS);
        final ResidentStore resident = new ResidentStore();

        public FilledStore() {
            BenchChains.forEachBlockInterleaved(chains, resident::put);
        }

        @TearDown
        public void close() {
            resident.close();
        }
    }
}
