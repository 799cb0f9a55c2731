package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.BlockDevice.CompletionSink;
import io.kvcache.tiers.device.ForwardingDevice;
import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;

/// A device on which a test picks the operations that fail, or that do not end for now.
final class ScriptedDevice extends ForwardingDevice {

    /// An operation that a test may pick.
    enum Operation {
        READ,
        WRITE,
        SYNC
    }

    /// Outcome of an operation.
    enum Fate {
        DONE,
        FAILED,
        NO_SPACE,
        /// Ends when the fate of the next poll is no longer this.
        LATER
    }

    /// Decides on an operation.
    @FunctionalInterface
    interface Picker {
        Fate pick(Operation operation, long offset);
    }

    private static final Picker ALL_DONE = (_, _) -> Fate.DONE;

    private record Held(Operation operation, long offset, MemorySegment segment, long tag) {}

    private final Map<Long, Fate> fates = new HashMap<>();
    private final Map<Long, Held> held = new HashMap<>();
    private Picker picker = ALL_DONE;

    ScriptedDevice(BlockDevice below) {
        super(below);
    }

    void setPicker(Picker next) {
        picker = next;
    }

    void completeAll() {
        picker = ALL_DONE;
    }

    @Override
    public int inFlight() {
        return below().inFlight() + held.size();
    }

    @Override
    public boolean read(MemorySegment target, long offset, long tag) {
        return queue(new Held(Operation.READ, offset, target, tag));
    }

    @Override
    public boolean write(MemorySegment source, long offset, long tag) {
        return queue(new Held(Operation.WRITE, offset, source, tag));
    }

    @Override
    public boolean sync(long tag) {
        return queue(new Held(Operation.SYNC, 0, MemorySegment.NULL, tag));
    }

    private boolean queue(Held one) {
        Fate fate = picker.pick(one.operation, one.offset);
        if (fate == Fate.LATER) {
            held.put(one.tag, one);
            return true;
        }
        if (fate != Fate.DONE) {
            fates.put(one.tag, fate);
            return below().sync(one.tag);
        }
        return switch (one.operation) {
            case READ -> below().read(one.segment, one.offset, one.tag);
            case WRITE -> below().write(one.segment, one.offset, one.tag);
            case SYNC -> below().sync(one.tag);
        };
    }

    @Override
    public int poll(CompletionSink sink) {
        for (Held each : held.values().toArray(Held[]::new)) {
            if (picker.pick(each.operation, each.offset) != Fate.LATER) {
                held.remove(each.tag);
                queue(each);
            }
        }
        return below().poll((tag, outcome) -> {
            Fate fate = fates.remove(tag);
            sink.completed(tag, fate == null ? outcome : outcome(fate));
        });
    }

    private static IoOutcome outcome(Fate fate) {
        return switch (fate) {
            case DONE, LATER -> IoOutcome.DONE;
            case FAILED -> new IoOutcome(IoOutcome.Kind.FAILED, "EIO");
            case NO_SPACE -> new IoOutcome(IoOutcome.Kind.NO_SPACE, "ENOSPC");
        };
    }

    @Override
    public int await(CompletionSink sink, long timeoutNanos) {
        return poll(sink);
    }

    @Override
    public String describe() {
        return "picky " + below().describe();
    }
}
