package io.kvcache.bench.policy;

import io.kvcache.planner.replay.BeladyReplay;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.trace.Trace;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/// Question: what share of a trace's blocks does each policy find, and what does it cost per block?
///
/// One operation is one replay of the whole trace, metadata only. JMH adds its counters up over all iterations;
/// [HitRateProfiler] divides them.
///
/// Budget: 400 ns a block for importance.
///
/// Command: `./kvcache bench policy`, which prints the ratios beside Belady's; or, for other traces and policies,
/// the jar of `./kvcache hitrate-jar`, which [HitRateMain] runs.
@State(Scope.Benchmark)
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 1, jvmArgsAppend = "--sun-misc-unsafe-memory-access=allow") // JMH's own use, of which the JVM warns
@Warmup(iterations = 3)
@Measurement(iterations = 3)
public class PrefixHitRateBenchmark {

    /// As `--trace` takes it.
    @Param(HitRateParameters.DEFAULT_TRACE)
    private String trace = "";

    /// As `--policy` takes it, or a class.
    @Param({"lru", "importance"})
    private String policy = "";

    /// Capacity, or percent of the trace's distinct blocks.
    @Param({"3%", "11%"})
    private String blocks = "";

    /// As `--rule` takes it.
    @Param("reference")
    private String rule = "";

    private PrefixForest forest = new PrefixForest(new Trace("none", List.of()), BlockCountingRule.REFERENCE);
    private SimulatedCache cache = new BeladyReplay(true);
    private int capacity = 1;

    /// Summed up by JMH.
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class HitCounts {
        /// Blocks found.
        public long hits;
        /// Blocks looked up.
        public long accesses;
        /// Time of the replays.
        public long nanos;
    }

    /// Reads the trace.
    @Setup(Level.Trial)
    public void read() {
        cache = HitRateParameters.policy(policy);
        forest = new PrefixForest(HitRateParameters.trace(trace), HitRateParameters.rule(rule));
        capacity = HitRateParameters.Capacity.parse(blocks).of(forest.nodeCount());
    }

    /// The whole trace.
    @Benchmark
    public long replay(HitCounts hitCounts) {
        long start = System.nanoTime();
        HitTotals totals = cache.run(forest, capacity, 0);
        hitCounts.nanos += System.nanoTime() - start;
        hitCounts.hits += totals.blockHits();
        hitCounts.accesses += totals.blockAccesses();
        return totals.blockHits();
    }
}
