package io.kvcache.tiers.device;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.kvcache.tiers.device.BlockDevice.CompletionSink;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.random.RandomGenerator;

/// Keeps what is written to the device below and when it is synced, so that a test can cut the power at any
/// moment of it afterwards.
///
/// **Ownership.** The device below is closed with this one.
///
/// **Threads.** One.
public final class RecordingDevice extends ForwardingDevice {

    private static final int SECTOR_BYTES = 512;

    private final List<Event> events = new ArrayList<>();
    private final Map<Long, Event> flying = new HashMap<>();
    private final Map<Event.Write, Integer> ends = new HashMap<>();

    /// An event, in the order of its time.
    private sealed interface Event {
        /// A write was asked for. No two are equal, for each has an array of its own.
        @SuppressWarnings("ArrayRecordComponent")
        record Write(long offset, byte[] bytes) implements Event {}

        /// It ended.
        record Written(Write write) implements Event {}

        /// A sync was asked for when so many events had happened.
        record Sync(int events) implements Event {}

        /// It ended.
        record Synced(Sync sync) implements Event {}
    }

    /// @param below a device without another user
    public RecordingDevice(BlockDevice below) {
        super(below);
    }

    /// How many events there have been.
    public int events() {
        return events.size();
    }

    /// The numbers of events just before and just after each end of a sync.
    public List<Integer> boundaries() {
        List<Integer> boundaries = new ArrayList<>();
        for (int i = 0; i < events.size(); i++) {
            if (events.get(i) instanceof Event.Synced) {
                boundaries.add(i);
                boundaries.add(i + 1);
            }
        }
        return boundaries;
    }

    /// The device after the power went when so many events had happened: with everything that a sync had made
    /// durable, and of the rest what chance left, down to some sectors of a write.
    public void replay(int until, RandomGenerator random, MemorySegment image) {
        image.fill((byte) 0);
        int covered = covered(until);
        for (int i = 0; i < until; i++) {
            switch (events.get(i)) {
                case Event.Write write
                when ends.getOrDefault(write, covered) >= covered -> applySome(write, random, image);
                case Event.Write write -> apply(write, image, 0, write.bytes.length);
                case Event.Written _, Event.Sync _, Event.Synced _ -> {}
            }
        }
    }

    /// Events that a sync had made durable before.
    private int covered(int until) {
        int covered = 0;
        for (Event event : events.subList(0, until)) {
            if (event instanceof Event.Synced(Event.Sync sync)) {
                covered = Math.max(covered, sync.events);
            }
        }
        return covered;
    }

    private static void applySome(Event.Write write, RandomGenerator random, MemorySegment image) {
        switch (random.nextInt(3)) {
            case 0 -> {}
            case 1 -> apply(write, image, 0, write.bytes.length);
            default -> {
                for (int at = 0; at < write.bytes.length; at += SECTOR_BYTES) {
                    if (random.nextBoolean()) {
                        apply(write, image, at, SECTOR_BYTES);
                    }
                }
            }
        }
    }

    private static void apply(Event.Write write, MemorySegment image, int from, int bytes) {
        MemorySegment.copy(MemorySegment.ofArray(write.bytes), from, image, write.offset + from, bytes);
    }

    @Override
    public boolean write(MemorySegment source, long offset, long tag) {
        return below().write(source, offset, tag) && record(tag, new Event.Write(offset, source.toArray(JAVA_BYTE)));
    }

    @Override
    public boolean sync(long tag) {
        return below().sync(tag) && record(tag, new Event.Sync(events.size()));
    }

    private boolean record(long tag, Event event) {
        events.add(event);
        flying.put(tag, event);
        return true;
    }

    @Override
    public boolean discard(long offset, long length, long tag) {
        throw new UnsupportedOperationException("a record of discards");
    }

    @Override
    public int await(CompletionSink sink, long timeoutNanos) {
        return below().await(
                        (tag, outcome) -> {
                            switch (flying.remove(tag)) {
                                case Event.Write write -> {
                                    ends.put(write, events.size());
                                    events.add(new Event.Written(write));
                                }
                                case Event.Sync sync -> events.add(new Event.Synced(sync));
                                case Event.Written _, Event.Synced _ -> throw new AssertionError("ended twice");
                                case null -> {}
                            }
                            sink.completed(tag, outcome);
                        },
                        timeoutNanos);
    }

    @Override
    public String describe() {
        return "recorded " + below().describe();
    }
}
