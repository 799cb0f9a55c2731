package io.kvcache.transport.client;

import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;

/// Leases to release. They travel before the next request on any connection, so that a release wakes no thread.
/// Without a request the heartbeat sends them.
///
/// **Threads.** Any.
final class ReleaseQueue {

    private static final int MAX_BATCH = 256;

    private final ConcurrentLinkedQueue<Long> pending = new ConcurrentLinkedQueue<>();

    void add(long lease) {
        pending.add(lease);
    }

    /// Removes and returns some leases, which the caller sends or [queues again][#requeue].
    List<Long> drain() {
        Long lease = pending.poll();
        if (lease == null) {
            return List.of();
        }
        List<Long> taken = new ArrayList<>();
        while (lease != null) {
            taken.add(lease);
            lease = taken.size() < MAX_BATCH ? pending.poll() : null;
        }
        return taken;
    }

    /// Queues leases again that the server may not have received. Releasing one twice does no harm.
    void requeue(Collection<Long> leases) {
        pending.addAll(leases);
    }

    boolean isEmpty() {
        return pending.isEmpty();
    }

    /// Returns a request with a release before it.
    static OutboundFrame prepend(OutboundFrame request, List<Long> leases) {
        return leases.isEmpty()
                ? request
                : request.precededBy(releaseBody(leases).request(MessageType.RELEASE, 0, 0));
    }

    /// Returns the body of RELEASE.
    static BodyWriter releaseBody(List<Long> leases) {
        BodyWriter body = new BodyWriter(8 + Long.BYTES * leases.size())
                .i32(leases.size())
                .i32(0);
        leases.forEach(body::i64);
        return body;
    }
}
