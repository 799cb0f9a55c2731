package io.kvcache.bench.policy;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.planner.baseline.PolicyParameter;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/// Question: with a million blocks in chains of sixteen, what does a use cost for each block that it
/// touches, and what does an eviction cost with all that follows from it?
///
/// A use is of a chain drawn at random, so that its records are in no cache of the processor; a tenth of
/// the chains get nine tenths of the uses. LRU is told of the last block alone, importance of all sixteen.
/// An eviction is the choice of the victim and the exposure of its parent; sixteen of them are followed by
/// the admissions that fill the room again, which belong to the price. What comes back is what has just
/// gone, so what is remembered of it is near.
///
/// Budget: 400 ns a touched block, 2 µs an eviction, for importance.
///
/// Command: `./kvcache bench policy`
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 5, time = 2)
public class PolicyCostBenchmark {

    /// Blocks of a chain, and evictions of an invocation.
    static final int BATCH = 16;

    private static final int RECORDS = 1 << 20;
    private static final int CHAINS = RECORDS / BATCH;

    @Param({"LRU", "IMPORTANCE"})
    private String kind = "LRU";

    /// Reuse classes that callers tell of, 0 for nothing said.
    @Param({"0", "12"})
    private int labels;

    private ChainRecords records = new ChainRecords(1, 1);
    private EvictionPolicy policy = PolicyParameter.parse(kind).create(records);
    private Random random = new Random(1);
    private final int[] victims = new int[BATCH];

    /// Fills all records and uses as many chains as there are, so that the counters are not all new.
    @Setup(Level.Trial)
    public void fill() {
        records = new ChainRecords(RECORDS, BATCH);
        policy = PolicyParameter.parse(kind).create(records);
        random = new Random(1);
        for (int record = 0; record < RECORDS; record++) {
            records.admit(policy, record);
            records.labelRecord(policy, record, labels);
        }
        for (int i = 0; i < CHAINS; i++) {
            records.useChain(policy, head());
        }
    }

    /// One use of a chain of sixteen.
    @Benchmark
    @OperationsPerInvocation(BATCH)
    public EvictionPolicy touch() {
        records.useChain(policy, head());
        return policy;
    }

    /// Sixteen blocks out, and in again.
    @Benchmark
    @OperationsPerInvocation(BATCH)
    public int evict() {
        for (int i = 0; i < BATCH; i++) {
            victims[i] = policy.evict(any -> true);
            records.onEvicted(policy, victims[i]);
        }
        for (int i = BATCH - 1; i >= 0; i--) {
            records.admit(policy, victims[i]);
            records.labelRecord(policy, victims[i], labels);
        }
        return victims[0];
    }

    private int head() {
        boolean popular = random.nextInt(10) > 0;
        return random.nextInt(popular ? CHAINS / 10 : CHAINS) * BATCH;
    }
}
