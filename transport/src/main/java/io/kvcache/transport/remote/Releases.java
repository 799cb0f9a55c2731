package io.kvcache.transport.remote;

import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Frame;
import io.kvcache.transport.wire.MessageType;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;

/// Leases that are to be given back. They travel before the next request, whichever connection that
/// takes, so that giving back wakes nobody; when there is none, a clock sends them.
///
/// **Threads.** Any.
final class Releases {

    private static final int MOST_AT_ONCE = 256;

    private final ConcurrentLinkedQueue<Long> waiting = new ConcurrentLinkedQueue<>();

    void add(long lease) {
        waiting.add(lease);
    }

    /// Takes some out, which whoever takes them sends, or [puts back][#again].
    List<Long> take() {
        List<Long> taken = new ArrayList<>();
        Long lease = waiting.poll();
        while (lease != null) {
            taken.add(lease);
            lease = taken.size() < MOST_AT_ONCE ? waiting.poll() : null;
        }
        return taken;
    }

    /// What was taken may not have been heard; hearing it twice does no harm.
    void again(Collection<Long> leases) {
        waiting.addAll(leases);
    }

    boolean none() {
        return waiting.isEmpty();
    }

    /// A request after what is given back.
    static Frame before(Frame request, List<Long> leases) {
        return leases.isEmpty() ? request : request.after(body(leases).request(MessageType.RELEASE, 0, 0));
    }

    /// The body of RELEASE.
    static BodyWriter body(List<Long> leases) {
        BodyWriter body = new BodyWriter(8 + Long.BYTES * leases.size())
                .i32(leases.size())
                .i32(0);
        leases.forEach(body::i64);
        return body;
    }
}
