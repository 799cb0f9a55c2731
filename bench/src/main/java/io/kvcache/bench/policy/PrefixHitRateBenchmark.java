package io.kvcache.bench.policy;

import io.kvcache.bench.baseline.PolicyParameter;
import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.HitCounter.HitTotals;
import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceReader;
import io.kvcache.bench.trace.TraceReader.MalformedLine;
import io.kvcache.bench.trace.TraceSource;
import java.io.IOException;
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
/// One operation is one replay of the whole trace, metadata only. JMH adds its counters `hits` and `accesses`
/// up over all iterations, so their quotient is the ratio. The first command below prints that quotient beside
/// Belady's.
///
/// Budget: 400 ns a block for importance.
///
/// Command: `./kvcache bench policy`, which divides the counters; or, for other traces and policies,
/// `java -cp 'bench/target/kvcache-bench-*.jar:bench/target/lib/*' org.openjdk.jmh.Main
/// PrefixHitRateBenchmark -p trace=conversation`
@State(Scope.Benchmark)
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3)
@Measurement(iterations = 3)
public class PrefixHitRateBenchmark {

    @Param({"LRU", "LFU_DA", "IMPORTANCE"})
    private String kind = "LRU";

    /// Percent of the trace's distinct blocks that fit.
    @Param({"3", "11"})
    private double percent = 3;

    /// As `--trace` takes it.
    @Param("generated:1")
    private String trace = "";

    private PrefixForest forest = new PrefixForest(new Trace("none", List.of()), BlockCountingRule.REFERENCE);
    private int blocks = 1;

    /// Summed up by JMH.
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class HitCounts {
        /// Blocks found.
        public long hits;
        /// Blocks looked up.
        public long accesses;
    }

    /// Reads the trace.
    @Setup(Level.Trial)
    public void read() throws IOException {
        TraceReader reader = new TraceReader(MalformedLine.Handling.REFUSE, line -> {});
        forest = new PrefixForest(TraceSource.parse(trace).load(reader), BlockCountingRule.REFERENCE);
        blocks = (int) Math.max(1, Math.round(percent / 100 * forest.nodeCount()));
    }

    /// The whole trace.
    @Benchmark
    public long replay(HitCounts hitCounts) {
        HitTotals totals = new PolicyReplay(PolicyParameter.parse(kind)).run(forest, blocks, 0);
        hitCounts.hits += totals.blockHits();
        hitCounts.accesses += totals.blockAccesses();
        return totals.blockHits();
    }
}
