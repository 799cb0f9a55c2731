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

/// Question: what does it cost to replace one block among a million, with everything the policy has to be
/// told about it?
///
/// One operation is one eviction with its exposure, and the admission of the same block; once in sixteen
/// operations a random chain is used.
///
/// Budget: below a microsecond for LRU, since it runs under the store's lock; the copy of a 2 MiB block
/// takes a hundred. At most two for importance, which considers every leaf: it samples none.
///
/// Command: `java -cp 'bench/target/kvcache-bench-*.jar:bench/target/lib/*' org.openjdk.jmh.Main
/// EvictionBenchmark`
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 2, time = 2)
@Measurement(iterations = 3, time = 2)
public class EvictionBenchmark {

    private static final int RECORDS = 1 << 20;
    private static final int BATCH = 16;

    @Param({"LRU", "FIFO", "LFU_DA", "GDSF", "SLRU", "S3_FIFO", "SIEVE", "IMPORTANCE"})
    private String kind = "LRU";

    /// 1: every record is a leaf, the largest heap; 16: chains like those of prompts.
    @Param({"1", "16"})
    private int chainLength = 1;

    private ChainRecords records = new ChainRecords(1, 1);
    private EvictionPolicy policy = PolicyParameter.parse(kind).create(records);
    private Random random = new Random(1);

    /// Fills all records.
    @Setup(Level.Trial)
    public void fill() {
        records = new ChainRecords(RECORDS, chainLength);
        policy = PolicyParameter.parse(kind).create(records);
        random = new Random(1);
        for (int record = 0; record < RECORDS; record++) {
            records.admit(policy, record);
        }
    }

    /// Sixteen blocks out and in again, and one use.
    @Benchmark
    @OperationsPerInvocation(BATCH)
    public int replace() {
        int victim = EvictionPolicy.NONE;
        for (int i = 0; i < BATCH; i++) {
            victim = policy.evict(any -> true);
            records.onEvicted(policy, victim);
            records.admit(policy, victim);
        }
        int head = random.nextInt(RECORDS / chainLength) * chainLength;
        records.useChain(policy, head);
        return victim;
    }
}
