package io.kvcache.bench.policy;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.ImportancePolicy;
import io.kvcache.core.policy.PolicyState;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/// Question: with a million blocks, what does a put cost the policy that it declines?
///
/// Twice as many blocks as fit are used in turn, of which LRU finds none, so importance keeps what it has and declines
/// the rest. An operation is one block of that round that is not here: it is asked for, and declined; the few that are
/// taken all the same count with their eviction.
///
/// Budget: 300 ns.
///
/// Command: `./kvcache bench policy`
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 5, time = 2)
public class DeclinedPutBenchmark {

    private static final int RESIDENT = 1 << 20;
    private static final int BLOCKS = 2 * RESIDENT;

    /// Rounds after which the policy has learned that declining pays.
    private static final int ROUNDS = 8;

    /// Of the operations, how many must have been declined for the figure to be one.
    private static final double LEAST_DECLINED = 0.9;

    private final ChainRecords records = new ChainRecords(BLOCKS, 1);
    private final EvictionPolicy policy = new ImportancePolicy(records, new PolicyState(BLOCKS));
    private final boolean[] resident = new boolean[BLOCKS];
    private int next;
    private long declined;
    private long taken;

    @Setup(Level.Trial)
    public void learn() {
        for (long use = 0; use < (long) ROUNDS * BLOCKS; use++) {
            if (resident[next]) {
                policy.touch(next);
            } else {
                put(next);
            }
            next = (next + 1) % BLOCKS;
        }
        declined = 0;
        taken = 0;
    }

    @Benchmark
    public long put() {
        while (resident[next]) {
            next = (next + 1) % BLOCKS;
        }
        put(next);
        next = (next + 1) % BLOCKS;
        return declined;
    }

    private void put(int record) {
        if (policy.size() < RESIDENT) {
            admit(record);
        } else if (policy.admits(records.fingerprint(record), records.noveltyClass(record))) {
            int victim = policy.evict(any -> true);
            records.onEvicted(policy, victim);
            resident[victim] = false;
            admit(record);
            taken++;
        } else {
            policy.onDeclined(records.fingerprint(record), records.noveltyClass(record), true);
            declined++;
        }
    }

    private void admit(int record) {
        records.admit(policy, record);
        resident[record] = true;
    }

    @TearDown(Level.Trial)
    public void requireDeclined() {
        if (declined < LEAST_DECLINED * (declined + taken)) {
            throw new IllegalStateException("only " + declined + " of " + (declined + taken) + " puts were declined");
        }
    }
}
