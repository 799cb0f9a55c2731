package io.kvcache.tiers.device;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.kvcache.tiers.device.BlockDevice.CompletionSink;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;
import org.jspecify.annotations.Nullable;

/// Leaves the device below as it is: what is written stays here, page by page, and is read from here.
///
/// **Ownership.** The device below is not closed with this one.
///
/// **Threads.** One.
public final class OverlayDevice extends ForwardingDevice {

    private static final byte[] HOLE = new byte[ALIGNMENT];

    private final Map<Long, byte[]> pages = new HashMap<>();
    private final Map<Long, Reading> readings = new HashMap<>();
    private final Queue<Long> done = new ArrayDeque<>();

    private record Reading(MemorySegment target, long offset) {}

    /// @param below a device without another user
    public OverlayDevice(BlockDevice below) {
        super(below);
    }

    @Override
    public int inFlight() {
        return readings.size() + done.size();
    }

    @Override
    public boolean read(MemorySegment target, long offset, long tag) {
        if (inFlight() == depth() || !below().read(target, offset, tag)) {
            return false;
        }
        readings.put(tag, new Reading(target, offset));
        return true;
    }

    @Override
    public boolean write(MemorySegment source, long offset, long tag) {
        for (long at = 0; at < source.byteSize() && inFlight() < depth(); at += ALIGNMENT) {
            pages.put(offset + at, source.asSlice(at, ALIGNMENT).toArray(JAVA_BYTE));
        }
        return end(tag);
    }

    @Override
    public boolean sync(long tag) {
        return end(tag);
    }

    @Override
    public boolean discard(long offset, long length, long tag) {
        for (long at = 0; at < length && inFlight() < depth(); at += ALIGNMENT) {
            pages.put(offset + at, HOLE);
        }
        return end(tag);
    }

    private boolean end(long tag) {
        return inFlight() < depth() && done.add(tag);
    }

    @Override
    public int await(CompletionSink sink, long timeoutNanos) {
        int delivered = done.size();
        for (int i = 0; i < delivered; i++) {
            sink.completed(done.remove(), IoOutcome.DONE);
        }
        return delivered
                + below().await((tag, outcome) -> arrived(tag, outcome, sink), delivered > 0 ? 0 : timeoutNanos);
    }

    private void arrived(long tag, IoOutcome outcome, CompletionSink sink) {
        Reading reading = readings.remove(tag);
        for (long at = 0; reading != null && at < reading.target.byteSize(); at += ALIGNMENT) {
            byte @Nullable [] page = pages.get(reading.offset + at);
            if (page != null) {
                reading.target.asSlice(at, ALIGNMENT).copyFrom(MemorySegment.ofArray(page));
            }
        }
        sink.completed(tag, outcome);
    }

    @Override
    public String describe() {
        return "written to memory over " + below().describe();
    }

    @Override
    public void close() {
        poll((_, _) -> {});
    }
}
