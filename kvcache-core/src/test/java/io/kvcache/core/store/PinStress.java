package io.kvcache.core.store;

import io.kvcache.core.tree.ControlWord;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.ZZI_Result;

/// A reader that pins a record beside an eviction of it: one of them gets it, never both and never neither.
///
/// The third figure is the generation: how often the record was freed.
@JCStressTest
@State
@Outcome(id = "true, false, 0", expect = Expect.ACCEPTABLE, desc = "Pinned, and stays.")
@Outcome(id = "false, true, 1", expect = Expect.ACCEPTABLE, desc = "Evicted, and not pinned.")
@Outcome(expect = Expect.FORBIDDEN, desc = "Both, neither, or freed under a pin.")
public class PinStress {

    private final StressStore store = new StressStore();

    @Actor
    public void pin(ZZI_Result result) {
        result.r1 = store.pin();
    }

    @Actor
    public void evict(ZZI_Result result) {
        result.r2 = store.evict();
    }

    @Arbiter
    public void count(ZZI_Result result) {
        result.r3 = ControlWord.generation(store.pool.control(store.record));
    }
}
