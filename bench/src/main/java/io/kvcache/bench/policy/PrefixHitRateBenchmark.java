package io.kvcache.bench.policy;

import io.kvcache.bench.replay.BeladyReplay;
import io.kvcache.bench.replay.HitTotals;
import io.kvcache.bench.replay.PolicyReplay;
import io.kvcache.bench.replay.ReplayRule;
import io.kvcache.bench.replay.TraceForest;
import io.kvcache.bench.trace.MalformedLine;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceReader;
import io.kvcache.bench.trace.TraceSource;
import io.kvcache.core.policy.PolicyKind;
import java.io.IOException;
import java.util.List;
import java.util.Locale;
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
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/// Question: what share of a trace's blocks does each policy find, and what does it cost per block?
///
/// One operation is one replay of the whole trace, metadata only. JMH adds its counters `hits` and `accesses` up over
/// all iterations, so their quotient is the ratio; it is printed at the end of each trial, beside Belady's
/// and the nanoseconds per block of the last replay.
///
/// Budget: 400 ns a block for importance.
///
/// Command: `java -cp 'bench/target/kvcache-bench-*.jar:bench/target/lib/*' org.openjdk.jmh.Main PrefixHitRateBenchmark
/// -p trace=conversation`
@State(Scope.Benchmark)
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Fork(1)
@Warmup(iterations = 3)
@Measurement(iterations = 3)
public class PrefixHitRateBenchmark {

    @Param({"LRU", "LFU_DA", "IMPORTANCE"})
    private PolicyKind kind = PolicyKind.LRU;

    /// Percent of the trace's distinct blocks that fit.
    @Param({"3", "11"})
    private double percent = 3;

    /// As `--trace` takes it.
    @Param("generated:1")
    private String trace = "";

    private TraceForest forest = new TraceForest(new Trace("none", List.of()), ReplayRule.REFERENCE);
    private int blocks = 1;
    private HitTotals totals = new HitTotals(0, 0, 0, 0, 0);
    private long nanos;

    /// Summed up by JMH.
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class Found {
        /// Blocks found.
        public long hits;
        /// Blocks looked up.
        public long accesses;
    }

    /// Reads the trace.
    @Setup(Level.Trial)
    public void read() throws IOException {
        TraceReader reader = new TraceReader(MalformedLine.Choice.REFUSE, line -> {});
        forest = new TraceForest(TraceSource.parse(trace).load(reader), ReplayRule.REFERENCE);
        blocks = (int) Math.max(1, Math.round(percent / 100 * forest.nodes()));
    }

    /// The whole trace.
    @Benchmark
    public long replay(Found found) {
        long start = System.nanoTime();
        totals = new PolicyReplay(kind).run(forest, blocks, 0);
        nanos = System.nanoTime() - start;
        found.hits += totals.blockHits();
        found.accesses += totals.blockAccesses();
        return totals.blockHits();
    }

    /// The ratio, beside what is possible.
    @TearDown(Level.Trial)
    public void report() {
        double bound = new BeladyReplay(true).run(forest, blocks, 0).blockHitRatio();
        System.out.println(String.format(
                Locale.ROOT,
                "%n%s, %,d blocks, %s: %.4f found, Belady with bypass %.4f, %.0f ns a block",
                trace,
                blocks,
                kind.commandName(),
                totals.blockHitRatio(),
                bound,
                (double) nanos / totals.blockAccesses()));
    }
}
