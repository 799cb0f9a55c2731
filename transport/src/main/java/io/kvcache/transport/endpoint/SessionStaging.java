package io.kvcache.transport.endpoint;

import io.kvcache.core.shm.StagingArea;
import io.kvcache.transport.wire.Status;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The memory that one session's client writes into: none until it is asked for, the same from then on, and
/// gone with the session.
///
/// **Threads.** Any.
final class SessionStaging {

    private volatile @Nullable StagingArea area;
    private boolean closed;

    /// What there is, or null.
    @Nullable
    StagingArea area() {
        return area;
    }

    /// What there is, or is made now.
    synchronized StagingArea areaOrCreate(Supplier<StagingArea> make) throws RequestException {
        if (closed) {
            throw new RequestException(Status.GONE, "the session is over");
        }
        StagingArea there = area;
        if (there == null) {
            there = make.get();
            area = there;
        }
        return there;
    }

    /// Gives it back.
    synchronized void close() {
        closed = true;
        StagingArea there = area;
        if (there != null) {
            there.close();
        }
    }
}
