package io.kvcache.transport.shm;

import java.lang.foreign.Arena;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/// How long files of another process stay mapped: until the last who uses them has let them go.
///
/// **Ownership.** Whoever makes one uses it, and releases it once.
///
/// **Threads.** Any.
final class SharedMapping {

    private static final System.Logger LOG = System.getLogger(SharedMapping.class.getName());

    /// Attempts to unmap, a millisecond apart, while a native call of somebody still uses the memory.
    private static final int UNMAP_ATTEMPTS = 1000;

    private static final long UNMAP_PAUSE_NANOS = 1_000_000;

    private final Arena arena = Arena.ofShared();
    private final AtomicInteger users = new AtomicInteger(1);

    /// What the files are mapped in.
    Arena arena() {
        return arena;
    }

    /// Keeps it until [#release]; answers false when it is unmapped already.
    boolean retain() {
        int now = users.get();
        while (now > 0 && !users.compareAndSet(now, now + 1)) {
            now = users.get();
        }
        return now > 0;
    }

    /// Lets it go. When nobody has it any more it is unmapped, by a thread of its own: that may take a
    /// while.
    void release() {
        int left = users.decrementAndGet();
        assert left >= 0 : "released more often than retained";
        if (left == 0) {
            Thread.ofPlatform().daemon().name("kvcache-unmap").start(this::unmap);
        }
    }

    private void unmap() {
        for (int attempt = 0; attempt < UNMAP_ATTEMPTS; attempt++) {
            try {
                arena.close();
                return;
            } catch (IllegalStateException heldByNativeCall) {
                LockSupport.parkNanos(UNMAP_PAUSE_NANOS);
            }
        }
        LOG.log(System.Logger.Level.WARNING, "shared memory stays mapped: a native call still uses it");
    }
}
