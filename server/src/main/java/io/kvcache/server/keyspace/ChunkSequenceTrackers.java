package io.kvcache.server.keyspace;

import org.jspecify.annotations.Nullable;

/// The [ChunkSequenceTracker] of one connection. Another tenant's keys begin a run of their own.
///
/// **Threads.** One at a time, as a connection is served.
public final class ChunkSequenceTrackers {

    private @Nullable ChunkSequenceTracker run;

    /// The run of a keyspace; a new one when the last request was about another's keys.
    public ChunkSequenceTracker forKeyspace(Keyspace keyspace) {
        ChunkSequenceTracker current = run;
        if (current == null || current.keyspace() != keyspace) {
            current = keyspace.newSequenceTracker();
            run = current;
        }
        return current;
    }
}
