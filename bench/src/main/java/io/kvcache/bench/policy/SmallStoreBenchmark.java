package io.kvcache.bench.policy;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.PolicyState;
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

/// Question: what does a use cost for each block that it touches where the policy's turns weigh most: with
/// 2,000 blocks, and with twenty tenants of 2,000 blocks each, which have one instance each and share one
/// clock?
///
/// A use is of a chain of sixteen drawn at random from all of them, a tenth of the chains get nine tenths
/// of the uses, and after each eight chains of that tenant are evicted and admitted anew, so that ranks are
/// asked for.
///
/// Budget: 400 ns a touched block, for importance, what is evicted included.
///
/// Command: `./kvcache bench policy`
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 5, time = 2)
public class SmallStoreBenchmark {

    private static final int CHAIN = 16;
    private static final int CHAINS = 125;

    /// Uses after which one chain's worth of blocks is replaced.
    private static final int USES_A_REPLACEMENT = 8;

    private static final int WARM_USES = 20_000;

    @Param({"LRU", "IMPORTANCE"})
    private String kind = "LRU";

    /// With an instance each.
    @Param({"1", "20"})
    private int tenants = 1;

    /// Reuse classes that callers tell of, 0 for nothing said.
    @Param({"0", "12"})
    private int labels;

    private ChainRecords records = new ChainRecords(1, 1);
    private EvictionPolicy[] policies = {};
    private Random random = new Random(1);
    private final int[] victims = new int[CHAIN];
    private int uses;

    /// Fills all records, and uses them until the past is long.
    @Setup(Level.Trial)
    public void fill() {
        records = new ChainRecords(tenants * CHAINS * CHAIN, CHAIN);
        PolicyState state = new PolicyState(records.capacity());
        policies = new EvictionPolicy[tenants];
        random = new Random(1);
        for (int tenant = 0; tenant < tenants; tenant++) {
            policies[tenant] = PolicyParameter.parse(kind).create(records, state);
        }
        for (int record = 0; record < records.capacity(); record++) {
            EvictionPolicy policy = policies[record / (CHAINS * CHAIN)];
            records.admit(policy, record);
            records.labelRecord(policy, record, labels);
        }
        for (int i = 0; i < WARM_USES * tenants; i++) {
            touch();
        }
    }

    /// One use of a chain of sixteen.
    @Benchmark
    @OperationsPerInvocation(CHAIN)
    public int touch() {
        int tenant = random.nextInt(tenants);
        EvictionPolicy policy = policies[tenant];
        boolean popular = random.nextInt(10) > 0;
        int chain = tenant * CHAINS + random.nextInt(popular ? CHAINS / 10 : CHAINS);
        records.useChain(policy, chain * CHAIN);
        if (++uses % USES_A_REPLACEMENT == 0) {
            replace(policy);
        }
        return chain;
    }

    private void replace(EvictionPolicy policy) {
        for (int i = 0; i < CHAIN; i++) {
            victims[i] = policy.evict(any -> true);
            records.onEvicted(policy, victims[i]);
        }
        for (int i = CHAIN - 1; i >= 0; i--) {
            records.admit(policy, victims[i]);
            records.labelRecord(policy, victims[i], labels);
        }
    }
}
