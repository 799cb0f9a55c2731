package io.kvcache.tiers.disk;

import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.EnumMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// Reads blocks, and lets nothing through that has not the block's checksum.
///
/// A region is not overwritten while a read from it is under way; so what a read meets is what lay there when it
/// was taken.
final class VerifyingReader {

    private final LogIo io;
    private final RegionTable regionTable;
    private final TierListener store;
    private final int limit;
    private final ChecksumPool checksumPool;
    private final Map<TierRead.Outcome, Long> counts = new EnumMap<>(TierRead.Outcome.class);
    private int inFlight;
    private long stale;

    VerifyingReader(LogIo io, RegionTable regionTable, TierListener store, int limit, ChecksumPool checksumPool) {
        this.io = io;
        this.regionTable = regionTable;
        this.store = store;
        this.limit = limit;
        this.checksumPool = checksumPool;
    }

    SubmitResult read(long address, BufferList target, int checksum, long tag) {
        if (!io.canRead()) {
            return SubmitResult.REJECTED;
        }
        Region region = regionTable.regionAt(address);
        if (!region.isCurrent(address)) {
            stale++;
            return SubmitResult.GONE;
        }
        if (inFlight >= limit) {
            return SubmitResult.RETRY;
        }
        inFlight++;
        new PendingRead(region, target, checksum, tag).start(address);
        return SubmitResult.ACCEPTED;
    }

    /// Follows up what was checked.
    ///
    /// @return how many reads have ended
    int pump() {
        return checksumPool.pump(io.isDeviceIdle());
    }

    boolean isIdle() {
        return inFlight == 0;
    }

    DiskLogStats.Reads stats() {
        return new DiskLogStats.Reads(
                counts.getOrDefault(TierRead.Outcome.SUCCESS, 0L),
                counts.getOrDefault(TierRead.Outcome.UNREADABLE, 0L),
                counts.getOrDefault(TierRead.Outcome.CORRUPT, 0L),
                stale);
    }

    private final class PendingRead {
        private final Region region;
        private final BufferList target;
        private final int checksum;
        private final long tag;
        private int left;
        private boolean failed;

        PendingRead(Region region, BufferList target, int checksum, long tag) {
            this.region = region;
            this.target = target;
            this.checksum = checksum;
            this.tag = tag;
        }

        void start(long address) {
            region.startReading();
            left = target.spans().size();
            long offset = regionTable.offset(region, LogAddress.page(address));
            for (MemorySegment span : target.spans()) {
                io.load(span, offset, this::onComplete);
                offset += span.byteSize();
            }
        }

        private void onComplete(IoOutcome outcome) {
            failed |= !outcome.isDone();
            left--;
            if (left == 0) {
                region.endReading();
                if (failed) {
                    finish(TierRead.Outcome.UNREADABLE);
                } else {
                    checksumPool.check(
                            target,
                            checksum,
                            right -> finish(right ? TierRead.Outcome.SUCCESS : TierRead.Outcome.CORRUPT));
                }
            }
        }

        private void finish(TierRead.Outcome outcome) {
            inFlight--;
            counts.merge(outcome, 1L, Long::sum);
            store.onRead(tag, outcome);
        }
    }

    /// Compares what was read with its checksum, large blocks beside the log's thread.
    ///
    /// A thread checks some 20 GB/s, which is no more than a few disks read. So one block is checked while the
    /// log's thread hands on the next; and when there is nothing to read, the log's thread helps.
    ///
    /// **Threads.** The log's, but for the executor's that check.
    static final class ChecksumPool {

        /// Below that, handing it over costs as much as checking it.
        private static final int SMALL_BYTES = 256 << 10;

        private final @Nullable Executor executor;
        private final Runnable wake;
        private final Queue<ChecksumTask> pending = new ArrayDeque<>();

        /// @param beside runs checks; null when the log's thread does all
        /// @param wake ends the wait of the log's thread
        ChecksumPool(@Nullable Executor beside, Runnable wake) {
            this.executor = beside;
            this.wake = wake;
        }

        /// Hears, on the log's thread, whether the checksum is right.
        @FunctionalInterface
        interface Callback {
            void onChecked(boolean right);
        }

        /// @param bufferList stay as they are until `then` was told
        void check(BufferList bufferList, int checksum, Callback then) {
            if (executor == null || bufferList.bytes() < SMALL_BYTES) {
                then.onChecked(bufferList.checksum() == checksum);
                return;
            }
            ChecksumTask checksumTask = new ChecksumTask(bufferList, checksum, then, wake);
            pending.add(checksumTask);
            executor.execute(checksumTask);
        }

        /// Tells of those that are done.
        ///
        /// @param help whether to check one of the others here and now
        /// @return how many were done
        int pump(boolean help) {
            if (help) {
                pending.stream().filter(ChecksumTask::claim).findFirst().ifPresent(ChecksumTask::compute);
            }
            int ended = 0;
            for (Iterator<ChecksumTask> each = pending.iterator(); each.hasNext(); ) {
                ChecksumTask checksumTask = each.next();
                if (checksumTask.done) {
                    each.remove();
                    checksumTask.callback.onChecked(checksumTask.matches);
                    ended++;
                }
            }
            return ended;
        }

        boolean isIdle() {
            return pending.isEmpty();
        }

        private static final class ChecksumTask implements Runnable {
            private final BufferList bufferList;
            private final int checksum;
            private final Callback callback;
            private final Runnable wake;
            private final AtomicBoolean claimed = new AtomicBoolean();
            private boolean matches;
            private volatile boolean done;

            ChecksumTask(BufferList bufferList, int checksum, Callback then, Runnable wake) {
                this.bufferList = bufferList;
                this.checksum = checksum;
                this.callback = then;
                this.wake = wake;
            }

            boolean claim() {
                return claimed.compareAndSet(false, true);
            }

            void compute() {
                try {
                    matches = bufferList.checksum() == checksum;
                } finally {
                    done = true;
                }
            }

            @Override
            public void run() {
                if (claim()) {
                    compute();
                    wake.run();
                }
            }
        }
    }
}
