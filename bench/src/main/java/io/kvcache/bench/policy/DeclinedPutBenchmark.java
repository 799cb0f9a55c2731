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
/// A waiting request is said to use each block that is here, and none is to use those that come, so each of these is
/// declined. What declining by promise takes beyond that is two look-ups in tables that the processor has at hand.
///
/// Budget: 300 ns.
///
/// Command: `./kvcache bench policy`
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 8, time = 1)
public class DeclinedPutBenchmark {

    private static final int RESIDENT = 1 << 20;

    private final ChainRecords records = new ChainRecords(RESIDENT, 1);
    private final EvictionPolicy policy = new ImportancePolicy(records, new PolicyState(RESIDENT));
    private long unseen = RESIDENT;
    private long taken;

    @Setup(Level.Trial)
    public void fill() {
        for (int record = 0; record < RESIDENT; record++) {
            records.admit(policy, record);
        }
    }

    /// Announces all blocks anew: what is announced is forgotten after some millions of uses, as puts are.
    @Setup(Level.Iteration)
    public void announce() {
        for (int record = 0; record < RESIDENT; record++) {
            policy.touch(record);
            policy.expect(record);
        }
    }

    @Benchmark
    public long put() {
        long fingerprint = unseen++;
        if (policy.admits(fingerprint, 0)) {
            taken++;
        } else {
            policy.onDeclined(fingerprint, 0, true);
        }
        return taken;
    }

    @TearDown(Level.Trial)
    public void requireDeclined() {
        if (taken > 0) {
            throw new IllegalStateException(taken + " of " + (unseen - RESIDENT) + " puts were not declined");
        }
    }
}
