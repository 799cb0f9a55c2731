package io.kvcache.core.store;

import io.kvcache.core.tree.ControlWord;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/// The last two pins go while the record is dropped: it is freed once, by the last of them.
///
/// The figures are the generation, which counts how often it was freed, and the records still taken.
@JCStressTest
@State
@Outcome(id = "1, 0", expect = Expect.ACCEPTABLE, desc = "Freed once.")
@Outcome(expect = Expect.FORBIDDEN, desc = "Leaked, or freed twice.")
public class UnpinStress {

    private final StressStore store = new StressStore();

    public UnpinStress() {
        for (int pins = 0; pins < 2; pins++) {
            if (!store.pin()) {
                throw new IllegalStateException("a sealed record refuses a pin");
            }
        }
    }

    @Actor
    public void unpin() {
        store.unpin();
    }

    @Actor
    public void drop() {
        store.drop();
        store.unpin();
    }

    @Arbiter
    public void count(II_Result result) {
        result.r1 = ControlWord.generation(store.pool.control(store.record));
        result.r2 = store.pool.live();
    }
}
