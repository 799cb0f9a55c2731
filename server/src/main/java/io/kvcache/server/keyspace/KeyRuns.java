package io.kvcache.server.keyspace;

import org.jspecify.annotations.Nullable;

/// The [KeyRun] of one connection. Another tenant's keys begin a run of their own.
///
/// **Threads.** One at a time, as a connection is served.
public final class KeyRuns {

    private @Nullable KeyRun run;

    /// The run of a keyspace; a new one when the last request was about another's keys.
    public KeyRun of(Keyspace keyspace) {
        KeyRun current = run;
        if (current == null || current.keyspace() != keyspace) {
            current = keyspace.newRun();
            run = current;
        }
        return current;
    }
}
