package io.kvcache.server.keyspace;

import io.kvcache.server.keyspace.KeyspaceOptions.RecomputeEstimator;

/// Whether the chunks on disk that a look-up finds are worth reading, all together: if not, the
/// client is told that the next one is not there, and computes from it on.
///
/// Where in its sequence a look-up begins is not known when the client has the first chunks itself;
/// then computing counts for less than it takes. As nothing is learned of a disk that is not read,
/// one in [#TRIES] chunks is told of all the same.
///
/// **Threads.** One at a time, as a connection is served.
final class RecomputeAdvisor {

    private static final int TRIES = 64;

    private final RecomputeEstimator terms;
    private int position;
    private int onDiskChunks;
    private long onDiskBytes;
    private int refusals;

    RecomputeAdvisor(RecomputeEstimator terms) {
        this.terms = terms;
    }

    /// A look-up has come to a chunk that is here.
    ///
    /// @param goesOn whether it came to the one before too; else it begins
    /// @param bytes that would have to be read; 0 when it is in memory
    /// @return whether to tell of it
    boolean shouldLoad(boolean goesOn, long bytes) {
        if (!goesOn) {
            position = 0;
            onDiskChunks = 0;
            onDiskBytes = 0;
        }
        position++;
        if (bytes == 0) {
            return true;
        }
        onDiskChunks++;
        onDiskBytes += bytes;
        return !terms.isRecomputeFaster(onDiskBytes, position - onDiskChunks, position) || ++refusals % TRIES == 0;
    }
}
