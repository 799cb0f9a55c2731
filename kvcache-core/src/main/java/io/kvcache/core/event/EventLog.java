package io.kvcache.core.event;

import java.util.ArrayList;
import java.util.List;

/// The last events in a ring of longs, so that recording one allocates nothing.
///
/// **Threads.** Owned by the store's lock.
public final class EventLog {

    /// Seven longs an event; 65,536 events are 4 MiB and some seconds of a busy store.
    public static final int DEFAULT_CAPACITY = 1 << 16;

    private static final int FIELDS = 7;
    private static final EventKind[] KINDS = EventKind.values();
    private static final TierKind[] TIERS = TierKind.values();

    private final long[] ring;
    /// As numbers: storing a reference for each event would have the collector look at it.
    private final byte[] kinds;

    private final byte[] tiers;
    private final int mask;
    private long next;

    /// @param capacity events kept; a power of two
    public EventLog(int capacity) {
        if (capacity < 2 || Integer.bitCount(capacity) != 1 || capacity > 1 << 24) {
            throw new IllegalArgumentException(
                    "event capacity is " + capacity + "; it takes a power of two from 2 to " + (1 << 24));
        }
        ring = new long[capacity * FIELDS];
        kinds = new byte[capacity];
        tiers = new byte[capacity];
        mask = capacity - 1;
    }

    /// Records an event and gives it the next sequence number; the number in `event` is not looked at.
    @SuppressWarnings("EnumOrdinal") // these numbers never leave the log
    public void record(CacheEvent event) {
        int at = (int) (next & mask) * FIELDS;
        ring[at] = event.keyHi();
        ring[at + 1] = event.keyLo();
        ring[at + 2] = event.parentHi();
        ring[at + 3] = event.parentLo();
        ring[at + 4] = event.engineHash();
        ring[at + 5] = (long) event.depth() << 32 | event.namespaceId();
        ring[at + 6] = event.parentEngineHash();
        kinds[(int) (next & mask)] = (byte) event.kind().ordinal();
        tiers[(int) (next & mask)] = (byte) event.tier().ordinal();
        next++;
    }

    /// Events kept.
    public int capacity() {
        return mask + 1;
    }

    public long nextSequence() {
        return next;
    }

    /// Events from `sequence` on, at most `max`.
    public EventBatch since(long sequence, int max) {
        if (max < 1 || max > 1 << 16) {
            throw new IllegalArgumentException("max is " + max + "; it takes 1 to " + (1 << 16));
        }
        long oldest = Math.max(0, next - mask - 1);
        long from = Math.clamp(sequence, oldest, next);
        long to = Math.min(next, from + max);
        List<CacheEvent> events = new ArrayList<>((int) (to - from));
        for (long at = from; at < to; at++) {
            events.add(read(at));
        }
        return new EventBatch(events, sequence < oldest, to);
    }

    private CacheEvent read(long sequence) {
        int at = (int) (sequence & mask) * FIELDS;
        long packed = ring[at + 5];
        return new CacheEvent(
                sequence,
                KINDS[kinds[(int) (sequence & mask)]],
                TIERS[tiers[(int) (sequence & mask)]],
                (int) packed,
                ring[at],
                ring[at + 1],
                ring[at + 2],
                ring[at + 3],
                (int) (packed >>> 32),
                ring[at + 4],
                ring[at + 6]);
    }
}
