package io.kvcache.tiers;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.SealOutcome;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.IntFunction;

/// Blocks that are stored by copying them, one after another.
final class BulkPut {

    private BulkPut() {}

    /// Stops at the first that is refused.
    ///
    /// @param writers by the block's number in the run
    static PutSummary put(List<MemorySegment> blocks, IntFunction<BlockWriter> writers) {
        int stored = 0;
        int present = 0;
        PutOutcome last = PutOutcome.PRESENT;
        for (int i = 0; i < blocks.size(); i++) {
            try (BlockWriter writer = writers.apply(i)) {
                last = writer.outcome();
                if (last == PutOutcome.RESERVED) {
                    writer.copyFrom(blocks.get(i));
                    if (writer.seal() == SealOutcome.DROPPED) {
                        return new PutSummary(stored, present, PutOutcome.NO_PARENT);
                    }
                    stored++;
                } else if (last.allowsNextBlock()) {
                    present++;
                } else {
                    return new PutSummary(stored, present, last);
                }
            }
        }
        return new PutSummary(stored, present, last);
    }
}
