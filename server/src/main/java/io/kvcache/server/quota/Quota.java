package io.kvcache.server.quota;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// The bytes that a tenant may store in all. Above the limit, the stock with the least recently used entry gives
/// room.
///
/// **What counts:** the slots of stored values and blocks, and of those being written. Each counts once, whether
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
    private final List<EvictableStock> evictables = new CopyOnWriteArrayList<>();

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

    /// Adds what counts for this quota.
    public void register(EvictableStock evictable) {
        evictables.add(evictable);
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

    /// The stock that has what was unused for longest, or null when nothing can go.
    public @Nullable EvictableStock leastRecentlyUsed() {
        EvictableStock stalest = null;
        long oldest = EvictableStock.NOTHING_EVICTABLE;
        for (EvictableStock evictable : evictables) {
            long use = evictable.oldestUse();
            if (use < oldest) {
                oldest = use;
                stalest = evictable;
            }
        }
        return stalest;
    }

    /// Things of one kind that a tenant has and that count for its quota: values, or blocks.
    ///
    /// **Threads.** Any.
    public interface EvictableStock {

        /// The answer of a stock that has nothing to evict.
        long NOTHING_EVICTABLE = Long.MAX_VALUE;

        /// Returns when the next victim was last used, by [Quota#nextUse]; 0 if it was not used since the start,
        /// [#NOTHING_EVICTABLE] if the stock cannot evict anything.
        long oldestUse();

        /// Evicts the next victim to make room.
        ///
        /// @return whether there was one
        boolean evictOldest();
    }
}
