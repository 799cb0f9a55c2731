package io.kvcache.transport.client;

import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;

/// Leases that are to be given back. They travel before the next request, whichever connection that takes, so that
/// giving back wakes no thread; when there is none, a clock sends them.
///
/// **Threads.** Any.
final class ReleaseQueue {

    private static final int MAX_BATCH = 256;

    private final ConcurrentLinkedQueue<Long> pending = new ConcurrentLinkedQueue<>();

    void add(long lease) {
        pending.add(lease);
    }

    /// Takes some out, which the caller sends, or [puts back][#requeue].
    List<Long> drain() {
        List<Long> taken = new ArrayList<>();
        Long lease = pending.poll();
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

    /// A request after what is given back.
    static OutboundFrame prepend(OutboundFrame request, List<Long> leases) {
        return leases.isEmpty()
                ? request
                : request.precededBy(releaseBody(leases).request(MessageType.RELEASE, 0, 0));
    }

    /// The body of RELEASE.
    static BodyWriter releaseBody(List<Long> leases) {
        BodyWriter body = new BodyWriter(8 + Long.BYTES * leases.size())
                .i32(leases.size())
                .i32(0);
        leases.forEach(body::i64);
        return body;
    }
}
