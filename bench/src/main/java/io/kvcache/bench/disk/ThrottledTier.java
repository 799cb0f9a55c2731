package io.kvcache.bench.disk;

import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierSource;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.ForwardingDevice;
import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLog;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.options.MemoryOptions;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Locale;
import java.util.Queue;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// A log over memory at the speed of a disk.
///
/// @param coders as [DiskLog.Resources] takes them
/// @param coded whether blocks are coded
record ThrottledTier(MemorySegment storage, Executor coders, boolean coded, long bytesPerSecond) implements TierSource {

    private DiskGeometry geometry() {
        return new DiskGeometry(storage.byteSize(), 16L << 20);
    }

    @Override
    public String name() {
        return coded ? "coded" : "plain";
    }

    @Override
    public long maxLiveBytes() {
        return ReclaimConfig.defaults().liveBytes(geometry(), ReclaimConfig.DEFAULT_RESERVE_PERCENT);
    }

    @Override
    public long maxBlockBytes() {
        return geometry().maxEntryBytes();
    }

    @Override
    public Tier open(TierListener listener, MemorySegment slots) {
        ThrottledDevice device = new ThrottledDevice(MemoryDevice.create(storage, 64), bytesPerSecond);
        DiskLogConfig config = DiskLogConfig.of(geometry(), 1);
        return new DiskLog(
                name(),
                new DiskLog.Resources(device, device, new MappedMemorySource(MemoryOptions.defaults()), coders),
                config.withStaging(coded),
                listener);
    }

    /// A device whose transfers end no faster than at a rate, one after another, reads and writes together: a disk
    /// whose speed is known.
    ///
    /// **Threads.** One, but for [#wake].
    private static final class ThrottledDevice extends ForwardingDevice {

        private final double bytesPerNano;
        private final long[] bytesOf;
        private final Queue<Ended> ended = new ArrayDeque<>();
        private volatile Thread waiting = Thread.currentThread();
        private volatile boolean woken;
        private long freeAt;

        private record Ended(long tag, IoOutcome outcome, long dueNanos) {}

        ThrottledDevice(BlockDevice below, long bytesPerSecond) {
            super(below);
            bytesPerNano = bytesPerSecond / 1e9;
            bytesOf = new long[below.depth()];
        }

        @Override
        public boolean read(MemorySegment target, long offset, long tag) {
            bytesOf[(int) tag] = target.byteSize();
            return super.read(target, offset, tag);
        }

        @Override
        public boolean write(MemorySegment source, long offset, long tag) {
            bytesOf[(int) tag] = source.byteSize();
            return super.write(source, offset, tag);
        }

        @Override
        public boolean sync(long tag) {
            bytesOf[(int) tag] = 0;
            return super.sync(tag);
        }

        @Override
        public boolean discard(long offset, long length, long tag) {
            bytesOf[(int) tag] = 0;
            return super.discard(offset, length, tag);
        }

        @Override
        public void submit() {
            below().submit();
            below().poll((tag, outcome) -> {
                freeAt = Math.max(freeAt, System.nanoTime()) + (long) (bytesOf[(int) tag] / bytesPerNano);
                ended.add(new Ended(tag, outcome, freeAt));
            });
        }

        @Override
        public int poll(CompletionSink sink) {
            submit();
            int count = 0;
            for (Ended next = ended.peek(); next != null && next.dueNanos <= System.nanoTime(); next = ended.peek()) {
                ended.remove();
                sink.completed(next.tag, next.outcome);
                count++;
            }
            return count;
        }

        @Override
        public int await(CompletionSink sink, long timeoutNanos) {
            waiting = Thread.currentThread();
            long until = System.nanoTime() + timeoutNanos;
            int count = poll(sink);
            while (count == 0 && !woken && System.nanoTime() < until) {
                Ended next = ended.peek();
                long due = next == null ? until : Math.min(until, next.dueNanos);
                LockSupport.parkNanos(this, Math.max(1, due - System.nanoTime()));
                count = poll(sink);
            }
            woken = false;
            return count;
        }

        @Override
        public void wake() {
            woken = true;
            LockSupport.unpark(waiting);
        }

        @Override
        public int inFlight() {
            return super.inFlight() + ended.size();
        }

        @Override
        public String describe() {
            return String.format(
                    Locale.ROOT, "%s, %.0f MB/s", super.describe(), bytesPerNano * TimeUnit.SECONDS.toNanos(1) / 1e6);
        }
    }
}
