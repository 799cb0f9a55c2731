package io.kvcache.tiers;

import io.kvcache.core.Hint;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.tree.ControlWord;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// The pins that hints ask for, until their time is over.
///
/// Those of each group of namespaces hold a quarter of its share of host memory at most, for an
/// hour at most, so that hints cannot bring a store to a halt, and no namespace takes another's part of
/// that quarter.
///
/// **Threads.** Any.
final class TimedPins implements AutoCloseable {

    private static final int QUOTA_SHARE = 4;

    /// A new pin looks at all pins no oftener than this: there may be a page's worth each.
    private static final long SWEEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final HostStore store;
    private final Clock clock;
    private final Map<BlockKey, ActivePin> pins = new HashMap<>();
    private final Map<Integer, Long> bytesOfGroup = new HashMap<>();

    private long lastSweepNanos;

    private record ActivePin(int group, int record, long bytes, long start, long forNanos) {}

    TimedPins(HostStore store, Clock clock) {
        this.store = store;
        this.clock = clock;
        lastSweepNanos = clock.nanos();
    }

    /// Record and bytes that a pin holds.
    ///
    /// @param record record that the caller has pinned
    /// @param bytes bytes that the pin keeps in host memory
    record PinRequest(int record, long bytes) {}

    /// Takes a pin over, or gives it back when it is beyond the quota; then one that was there
    /// stays as it was.
    ///
    /// @param key by which it is known
    /// @return whether it was taken
    synchronized boolean pin(BlockKey key, PinRequest pinRequest, HostStore.MemoryShare share, long forNanos) {
        if (clock.nanos() - lastSweepNanos >= SWEEP_NANOS) {
            releaseExpired();
        }
        ActivePin before = pins.get(key);
        long others = bytesOfGroup.getOrDefault(share.group(), 0L) - (before == null ? 0 : before.bytes);
        if (others + pinRequest.bytes > share.bytes() / QUOTA_SHARE) {
            store.lookup().unpin(pinRequest.record);
            return false;
        }
        long time = Math.min(forNanos, Hint.Pin.MAX_TIME.toNanos());
        pins.put(key, new ActivePin(share.group(), pinRequest.record, pinRequest.bytes, clock.nanos(), time));
        bytesOfGroup.merge(share.group(), pinRequest.bytes, Long::sum);
        release(before);
        return true;
    }

    /// Ends a pin; answers whether it was there.
    synchronized boolean unpin(BlockKey key) {
        ActivePin activePin = pins.remove(key);
        release(activePin);
        return activePin != null;
    }

    /// Lets go of pins whose time is over, or of what was dropped.
    synchronized void releaseExpired() {
        if (pins.isEmpty()) {
            return;
        }
        long now = clock.nanos();
        lastSweepNanos = now;
        for (Iterator<ActivePin> all = pins.values().iterator(); all.hasNext(); ) {
            ActivePin activePin = all.next();
            if (now - activePin.start >= activePin.forNanos || isDropped(activePin.record)) {
                all.remove();
                release(activePin);
            }
        }
    }

    synchronized int count() {
        return pins.size();
    }

    synchronized long bytes() {
        return bytesOfGroup.values().stream().mapToLong(Long::longValue).sum();
    }

    private boolean isDropped(int record) {
        return ControlWord.state(store.records().control(record)) == ControlWord.DELETED;
    }

    private void release(@Nullable ActivePin activePin) {
        if (activePin != null) {
            bytesOfGroup.merge(activePin.group, -activePin.bytes, Long::sum);
            store.lookup().unpin(activePin.record);
        }
    }

    @Override
    public synchronized void close() {
        pins.values().forEach(this::release);
        pins.clear();
    }
}
