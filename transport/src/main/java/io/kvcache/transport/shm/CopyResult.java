package io.kvcache.transport.shm;

import io.kvcache.core.tree.RecordHandle;

/// What a copy without a message came to.
///
/// @param blocks copied, or -1 when the look-up could not tell
/// @param lastHandle handle of the last block that was copied; a miss when there is none
public record CopyResult(int blocks, long lastHandle) {

    static final CopyResult EMPTY = new CopyResult(0, RecordHandle.MISS);
    static final CopyResult INCONCLUSIVE = new CopyResult(-1, RecordHandle.MISS);

    /// Whether the look-up could tell.
    public boolean isConclusive() {
        return blocks >= 0;
    }
}
