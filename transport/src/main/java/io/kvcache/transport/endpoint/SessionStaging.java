package io.kvcache.transport.endpoint;

import io.kvcache.core.StagingArea;
import io.kvcache.transport.wire.Status;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The memory that one session's client writes into: none until it is asked for, the same from then on, and
/// gone with the session.
///
/// **Threads.** Any.
final class SessionStaging {

    private volatile @Nullable StagingArea area;
    private boolean over;

    /// What there is, or null.
    @Nullable
    StagingArea area() {
        return area;
    }

    /// What there is, or is made now.
    synchronized StagingArea areaOr(Supplier<StagingArea> make) throws Refused {
        if (over) {
            throw new Refused(Status.GONE, "the session is over");
        }
        StagingArea there = area;
        if (there == null) {
            there = make.get();
            area = there;
        }
        return there;
    }

    /// Gives it back.
    synchronized void end() {
        over = true;
        StagingArea there = area;
        if (there != null) {
            there.close();
        }
    }
}
