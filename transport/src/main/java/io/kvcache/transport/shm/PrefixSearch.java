package io.kvcache.transport.shm;

import io.kvcache.core.tree.RecordHandle;
import java.util.function.IntToLongFunction;

/// How far a chain is known. What is known of one is a prefix of it, so this is a binary search; first and
/// last block are asked before anything else, as most prompts are either new or here as a whole.
final class PrefixSearch {

    private static final int INCONCLUSIVE = -1;

    private PrefixSearch() {}

    /// Searches.
    ///
    /// @param known blocks that are known to be there
    /// @param limit blocks looked at
    /// @param find answers a [RecordHandle] of a block
    /// @return blocks that are there, or -1 when a look-up could not tell
    static int length(int known, int limit, IntToLongFunction find) {
        int there = known;
        int unknown = limit;
        int next = there;
        while (there < unknown) {
            long handle = find.applyAsLong(next);
            if (handle == RecordHandle.UNSURE) {
                return INCONCLUSIVE;
            }
            boolean first = there == known && unknown == limit;
            if (RecordHandle.isFound(handle)) {
                there = next + 1;
                next = first ? unknown - 1 : (there + unknown) >>> 1;
            } else {
                unknown = next;
                next = (there + unknown) >>> 1;
            }
        }
        return there;
    }
}
