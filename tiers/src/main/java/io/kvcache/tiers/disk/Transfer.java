package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// One operation of the device, and what follows it.
///
/// @param start hands it to the device, which may be full
/// @param written what a write is for, null for anything else
/// @param bytes of a load or a write
record Transfer(Start start, Sort sort, @Nullable WriteKind written, long bytes, Ended ended) {

    /// Hands an operation to a device.
    @FunctionalInterface
    interface Start {
        boolean on(BlockDevice device, long tag);
    }

    /// What follows when an operation has ended.
    @FunctionalInterface
    interface Ended {
        void ended(IoOutcome outcome);
    }

    /// What its failure means, and who goes first.
    enum Sort {
        /// A read that somebody waits for.
        LOAD,
        /// A read that the log needs itself.
        READ,
        WRITE,
        SYNC,
        DISCARD
    }

    static Transfer load(MemorySegment target, long offset, Ended ended) {
        return new Transfer(
                (device, tag) -> device.read(target, offset, tag), Sort.LOAD, null, target.byteSize(), ended);
    }

    static Transfer read(MemorySegment target, long offset, Ended ended) {
        return new Transfer((device, tag) -> device.read(target, offset, tag), Sort.READ, null, 0, ended);
    }

    static Transfer write(WriteKind kind, MemorySegment source, long offset, Ended ended) {
        return new Transfer(
                (device, tag) -> device.write(source, offset, tag), Sort.WRITE, kind, source.byteSize(), ended);
    }

    static Transfer sync(Ended ended) {
        return new Transfer(BlockDevice::sync, Sort.SYNC, null, 0, ended);
    }

    static Transfer discard(long offset, long length, Ended ended) {
        return new Transfer((device, tag) -> device.discard(offset, length, tag), Sort.DISCARD, null, 0, ended);
    }
}
