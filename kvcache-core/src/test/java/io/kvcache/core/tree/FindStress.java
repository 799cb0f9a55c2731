package io.kvcache.core.tree;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.CCC_Result;

/// A reader beside a writer that takes a record out of a bucket and puts it back there under another key.
///
/// The key that stays is never missed, and neither of the others is ever answered by the record while it is the
/// other's.
@JCStressTest
@State
@Outcome(id = "[HU], [HMU], [HMU]", expect = Expect.ACCEPTABLE, desc = "Found where it was, or not.")
@Outcome(expect = Expect.FORBIDDEN, desc = "False miss of the key that stays, or a false hit.")
public class FindStress {

    private final StressTree tree = new StressTree();
    private final int stays = tree.add(StressTree.KEY_KEPT);
    private final int reused = tree.add(StressTree.KEY_REMOVED);

    @Actor
    public void write() {
        tree.drop(reused);
        tree.add(StressTree.KEY_ADDED);
    }

    @Actor
    public void read(CCC_Result result) {
        result.r1 = tree.verdict(StressTree.KEY_KEPT, stays, 0);
        result.r2 = tree.verdict(StressTree.KEY_REMOVED, reused, 0);
        result.r3 = tree.verdict(StressTree.KEY_ADDED, reused, 1);
    }
}
