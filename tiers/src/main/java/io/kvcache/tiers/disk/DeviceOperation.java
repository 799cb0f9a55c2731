package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.disk.DiskLogStats.WriteKind;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// One operation of the device, from being asked for to its end, and what follows it.
final class DeviceOperation {

    /// Hands it to the device, which may be full.
    final Submitter submitter;
    final OperationType type;
    /// What a write is for, null for anything else.
    final @Nullable WriteKind writeKind;
    /// Of a load or a write.
    final long bytes;
    final Completion completion;
    /// When the device took it.
    long sinceNanos;
    boolean over;

    private DeviceOperation(
            Submitter submitter, OperationType type, @Nullable WriteKind writeKind, long bytes, Completion completion) {
        this.submitter = submitter;
        this.type = type;
        this.writeKind = writeKind;
        this.bytes = bytes;
        this.completion = completion;
    }

    /// Hands an operation to a device.
    @FunctionalInterface
    interface Submitter {
        boolean submit(BlockDevice device, long tag);
    }

    /// What follows when an operation has ended.
    @FunctionalInterface
    interface Completion {
        void complete(IoOutcome outcome);
    }

    /// What its failure means, and who goes first.
    enum OperationType {
        /// A read that somebody waits for.
        LOAD,
        /// A read that the log needs itself.
        READ,
        WRITE,
        SYNC,
        DISCARD
    }

    static DeviceOperation load(MemorySegment target, long offset, Completion completion) {
        return new DeviceOperation(
                (device, tag) -> device.read(target, offset, tag),
                OperationType.LOAD,
                null,
                target.byteSize(),
                completion);
    }

    static DeviceOperation read(MemorySegment target, long offset, Completion completion) {
        return new DeviceOperation(
                (device, tag) -> device.read(target, offset, tag), OperationType.READ, null, 0, completion);
    }

    static DeviceOperation write(WriteKind kind, MemorySegment source, long offset, Completion completion) {
        return new DeviceOperation(
                (device, tag) -> device.write(source, offset, tag),
                OperationType.WRITE,
                kind,
                source.byteSize(),
                completion);
    }

    static DeviceOperation sync(Completion completion) {
        return new DeviceOperation(BlockDevice::sync, OperationType.SYNC, null, 0, completion);
    }

    static DeviceOperation discard(long offset, long length, Completion completion) {
        return new DeviceOperation(
                (device, tag) -> device.discard(offset, length, tag), OperationType.DISCARD, null, 0, completion);
    }
}
