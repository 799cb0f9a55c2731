package io.kvcache.transport.remote;

import io.kvcache.transport.wire.BodyWriter;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;
import org.jspecify.annotations.Nullable;

/// Blocks that were read without a message, for the server's policy: collected by any thread, sent in
/// batches by one.
///
/// When more are read between two batches than fit, the rest is not told: a policy that hears of thousands
/// of uses decides as well as one that hears of all.
final class Touched {

    private static final int MOST = 8192;

    private final AtomicLongArray handles = new AtomicLongArray(MOST);
    private final AtomicInteger count = new AtomicInteger();

    /// Notes a use.
    ///
    /// @param handle of its record
    void note(long handle) {
        int at = count.get() < MOST ? count.getAndIncrement() : MOST;
        if (at < MOST) {
            handles.setRelease(at, handle + 1);
        }
    }

    /// The body of TOUCH, or null when there is nothing to tell. By one thread.
    @Nullable
    BodyWriter take() {
        int noted = Math.min(count.get(), MOST);
        if (noted == 0) {
            return null;
        }
        BodyWriter body = new BodyWriter(8 + Long.BYTES * noted).i32(noted).i32(0);
        for (int i = 0; i < noted; i++) {
            body.i64(handles.getAndSet(i, 0) - 1);
        }
        count.set(0);
        return body;
    }
}
