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
final class AccessReporter {

    private static final int MAX_ACCESSES = 8192;

    private final AtomicLongArray handles = new AtomicLongArray(MAX_ACCESSES);
    private final AtomicInteger count = new AtomicInteger();

    /// Notes a use.
    ///
    /// @param handle of its record
    void recordAccess(long handle) {
        int at = count.get() < MAX_ACCESSES ? count.getAndIncrement() : MAX_ACCESSES;
        if (at < MAX_ACCESSES) {
            handles.setRelease(at, handle + 1);
        }
    }

    /// The body of TOUCH, or null when there is nothing to tell. By one thread.
    @Nullable
    BodyWriter drainBody() {
        int noted = Math.min(count.get(), MAX_ACCESSES);
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
