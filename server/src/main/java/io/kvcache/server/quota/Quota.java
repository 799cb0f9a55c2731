package io.kvcache.server.quota;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// The bytes that a tenant may store in all.
///
/// **What counts:** the slots of stored values, and of those being written. Each counts once, whether
/// it is in host memory, on disk or both. So a quota bounds what a tenant has, and an added disk calls for larger
/// quotas. An evicted value no longer counts, although its memory is free only after its last reader.
///
/// **Threads.** Any.
public final class Quota {

    private static final long PAGE = 4096;

    private final long limitBytes;
    private final AtomicLong usedBytes = new AtomicLong();

    /// Used instead of `usedBytes` without a limit, so that threads do not contend for one counter.
    private final LongAdder unlimitedBytes = new LongAdder();

    private final AtomicLong useCounter = new AtomicLong();

    /// @param limitBytes 0 for no limit
    public Quota(long limitBytes) {
        this.limitBytes = limitBytes;
    }

    /// Room that was given to one thing that is being written, until it is stored or given up.
    ///
    /// **Threads.** One at a time.
    public final class QuotaReservation implements AutoCloseable {

        private final long bytes;
        private boolean open = true;

        private QuotaReservation(long bytes) {
            this.bytes = bytes;
        }

        /// The thing is stored: it counts from now on in place of the share.
        public void commit() {
            open = false;
        }

        /// Gives the room back, unless it was given or kept already.
        @Override
        public void close() {
            if (open) {
                open = false;
                removeUsage(bytes);
            }
        }
    }

    public boolean isLimited() {
        return limitBytes > 0;
    }

    /// 0 for no limit.
    public long limitBytes() {
        return limitBytes;
    }

    public long usedBytes() {
        // A sum over what threads add may have seen a value leave and not enter.
        return isLimited() ? usedBytes.get() : Math.max(0, unlimitedBytes.sum());
    }

    /// Returns the bytes of the store that a value of this size takes.
    public static long chargedBytes(long bytes) {
        return (bytes + PAGE - 1) / PAGE * PAGE;
    }

    /// Returns whether this many bytes could ever fit.
    public boolean canFit(long bytes) {
        return !isLimited() || bytes <= limitBytes;
    }

    /// Takes room, or answers null while there is none.
    public @Nullable QuotaReservation reserve(long bytes) {
        if (!isLimited()) {
            addUsage(bytes);
            return new QuotaReservation(bytes);
        }
        long used = usedBytes.get();
        while (used + bytes <= limitBytes) {
            if (usedBytes.compareAndSet(used, used + bytes)) {
                return new QuotaReservation(bytes);
            }
            used = usedBytes.get();
        }
        return null;
    }

    /// Something is stored, room or not.
    public void addUsage(long bytes) {
        if (isLimited()) {
            usedBytes.addAndGet(bytes);
        } else {
            unlimitedBytes.add(bytes);
        }
    }

    /// Something that is stored is gone.
    public void removeUsage(long bytes) {
        addUsage(-bytes);
    }

    /// The number of a use; later ones are larger.
    public long nextUse() {
        return useCounter.incrementAndGet();
    }
}
