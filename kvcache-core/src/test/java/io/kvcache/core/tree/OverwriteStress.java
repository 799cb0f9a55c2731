package io.kvcache.core.tree;

import java.lang.invoke.VarHandle;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.CCC_Result;

/// Readers with a pin and without one beside a writer that gives the slot of a record other bytes where it lies.
///
/// The key is never missed, a copy without a pin is whole or refused, and one under a pin is always whole.
@JCStressTest
@State
@Outcome(id = "[HXU], [ONR], [ONR]", expect = Expect.ACCEPTABLE, desc = "Found, and copied whole or not at all.")
@Outcome(expect = Expect.FORBIDDEN, desc = "A miss of a key that stays, or torn bytes.")
public class OverwriteStress {

    private final StressTree tree = new StressTree();
    private final StressSlot slot = new StressSlot();
    private final int record = tree.reserve(StressTree.KEY_KEPT);

    public OverwriteStress() {
        tree.pool.state(record, ControlWord.SEALED, 0);
    }

    @Actor
    public void overwrite() {
        if (tree.pool.claimForOverwrite(record)) {
            slot.fill(StressSlot.NEW);
            tree.pool.finishOverwrite(record, 4096, 0);
        }
    }

    @Actor
    public void read(CCC_Result result) {
        result.r1 = tree.verdict(StressTree.KEY_KEPT, record, 0); // X: under the next generation
        result.r2 = copyWithoutPin();
        result.r3 = copyUnderPin();
    }

    private char copyWithoutPin() {
        long before = tree.pool.control(record);
        if (ControlWord.state(before) != ControlWord.SEALED) {
            return 'R';
        }
        char copied = slot.copy();
        VarHandle.loadLoadFence();
        return ControlWord.generation(tree.pool.control(record)) == ControlWord.generation(before) ? copied : 'R';
    }

    private char copyUnderPin() {
        int generation = ControlWord.generation(tree.pool.control(record));
        if (!tree.pool.pin(record, generation)) {
            return 'R';
        }
        char copied = slot.copy();
        tree.pool.unpin(record);
        return copied;
    }
}
