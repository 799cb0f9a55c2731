package io.kvcache.core.tree;

import java.lang.invoke.VarHandle;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.CC_Result;

/// A one-sided reader without a pin: looks up, copies, and believes the copy if the generation is still the same.
/// Beside it the slot is given to another block and overwritten.
@JCStressTest
@State
@Outcome(id = "[OR], [OR]", expect = Expect.ACCEPTABLE, desc = "The old bytes, or the copy is refused.")
@Outcome(expect = Expect.FORBIDDEN, desc = "Believed a copy of something else.")
public class CopyStress {

    private final StressTree tree = new StressTree();
    private final StressSlot slot = new StressSlot();
    private final int record = tree.reserve(StressTree.KEY_REMOVED);

    public CopyStress() {
        tree.pool.state(record, ControlWord.SEALED, 0);
    }

    @Actor
    public void reuse() {
        tree.drop(record);
        int taken = tree.reserve(StressTree.KEY_ADDED);
        slot.fill(StressSlot.NEW);
        tree.pool.state(taken, ControlWord.SEALED, 0);
    }

    @Actor
    public void copyTwice(CC_Result result) {
        result.r1 = copy();
        result.r2 = copy();
    }

    private char copy() {
        long before = tree.pool.control(record);
        if (ControlWord.generation(before) != 0 || ControlWord.state(before) != ControlWord.SEALED) {
            return 'R';
        }
        char copied = slot.copy();
        VarHandle.loadLoadFence();
        return ControlWord.generation(tree.pool.control(record)) == 0 ? copied : 'R';
    }
}
