package io.kvcache.transport.shm;

import io.kvcache.core.tree.RecordHandle;

/// What a copy without a message came to.
///
/// @param blocks copied, or -1 when the look-up could not tell
/// @param last handle of the last block that was copied; a miss when there is none
public record Copied(int blocks, long last) {

    static final Copied NOTHING = new Copied(0, RecordHandle.MISS);
    static final Copied UNSURE = new Copied(-1, RecordHandle.MISS);

    /// Whether the look-up could tell.
    public boolean sure() {
        return blocks >= 0;
    }
}
