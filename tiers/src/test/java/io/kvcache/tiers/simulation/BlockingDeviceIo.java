package io.kvcache.tiers.simulation;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;

/// Calls a device and waits for each operation, at most a minute.
///
/// **Threads.** One: the owner of the device, which no other caller uses meanwhile.
public record BlockingDeviceIo(BlockDevice device) {

    private static final long LIMIT_NANOS = 60_000_000_000L;

    /// Reads the whole target.
    public IoOutcome read(MemorySegment target, long offset) {
        return outcome(device.read(target, offset, 0));
    }

    /// Writes the whole source.
    public IoOutcome write(MemorySegment source, long offset) {
        return outcome(device.write(source, offset, 0));
    }

    /// Syncs.
    public IoOutcome sync() {
        return outcome(device.sync(0));
    }

    /// Discards the span.
    public IoOutcome discard(long offset, long length) {
        return outcome(device.discard(offset, length, 0));
    }

    private IoOutcome outcome(boolean accepted) {
        if (!accepted) {
            throw new AssertionError("device of depth %s is full".formatted(device.depth()));
        }
        Deque<IoOutcome> outcomes = new ArrayDeque<>();
        long start = System.nanoTime();
        while (outcomes.isEmpty()) {
            device.await((_, outcome) -> outcomes.add(outcome), LIMIT_NANOS);
            if (outcomes.isEmpty() && System.nanoTime() - start > LIMIT_NANOS) {
                throw new AssertionError("the operation does not end");
            }
        }
        return outcomes.remove();
    }
}
