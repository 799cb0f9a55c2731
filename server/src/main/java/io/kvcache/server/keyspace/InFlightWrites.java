package io.kvcache.server.keyspace;

import io.kvcache.server.quota.Quota;
import java.util.concurrent.ConcurrentHashMap;

/// Which keys are being written at this moment, and by how many writers.
///
/// Each writer fills room of its own and its value replaces the older one when it is complete, so of several writers
/// the
/// last to finish wins, as with Redis. A writer that disconnects, is too slow or finds its condition refused takes
/// nothing from the others.
///
/// **Threads.** Any.
final class InFlightWrites {

    private final ConcurrentHashMap<Key, Integer> writers = new ConcurrentHashMap<>();

    /// Counts one more writer of a key.
    void begin(Key key) {
        writers.merge(key, 1, Integer::sum);
    }

    /// One writer's value is stored or given up.
    void end(Key key) {
        writers.computeIfPresent(key, (_, count) -> count == 1 ? null : count - 1);
    }

    /// Whether a writer is at the key at this moment.
    boolean isWriting(Key key) {
        return writers.containsKey(key);
    }

    /// What a writer holds beside its memory.
    final class WriteReservation {

        private final Key key;
        private final Quota.QuotaReservation quotaReservation;
        private final Runnable onReceived;
        private boolean open = true;

        /// @param quotaReservation of the quota
        /// @param arrived run once when the bytes are not on their way any more
        WriteReservation(Key key, Quota.QuotaReservation quotaReservation, Runnable arrived) {
            this.key = key;
            this.quotaReservation = quotaReservation;
            this.onReceived = arrived;
        }

        /// The bytes are there, or will not come: the value itself counts from here on, if there is one.
        void release() {
            quotaReservation.close();
            if (open) {
                open = false;
                onReceived.run();
            }
        }

        /// The value is stored or given up.
        void end() {
            release();
            InFlightWrites.this.end(key);
        }
    }
}
