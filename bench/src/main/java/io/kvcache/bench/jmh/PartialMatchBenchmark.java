package io.kvcache.bench.jmh;

import io.kvcache.bench.jmh.BenchChains.RandomIndexes;
import io.kvcache.core.identity.BlockChain;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/// How long does it take to find where a chain of 8,192 blocks ends, when that is anywhere in it?
///
/// The binary search in full: 13 look-ups more than [MatchBenchmark#whole]. Budget: 5 µs.
/// `./kvcache bench core --filter match`
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class PartialMatchBenchmark {

    @Benchmark
    public long match(PartialChains state, RandomIndexes random) {
        long blocks = 0;
        for (int i = 0; i < MatchBenchmark.BATCH; i++) {
            BlockChain chain = state.chains[random.next(state.chains.length, blocks)];
            blocks += state.resident.store.lookup().match(chain, chain.length());
        }
        return blocks;
    }

    /// Chains of which the store has a part, of any length.
    @State(Scope.Benchmark)
    public static class PartialChains {

        final BlockChain[] chains = BenchChains.of(1, 2 * ResidentCache.CHAINS);
        final ResidentStore resident = new ResidentStore();

        public PartialChains() {
            RandomIndexes random = new RandomIndexes();
            BlockChain[] parts = Arrays.stream(chains)
                    .map(chain -> chain.prefix(1 + random.next(chain.length() - 2, 0)))
                    .toArray(BlockChain[]::new);
            BenchChains.forEachBlockInterleaved(parts, resident::put);
        }

        @TearDown
        public void close() {
            resident.close();
        }
    }
}
