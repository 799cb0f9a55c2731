package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;

/// What every part of a log works with: transfers, syncs, and the state of the log.
final class LogIo {

    /// What follows a write of metadata.
    @FunctionalInterface
    interface Callback {
        void onWritten(boolean done);
    }

    /// A disk that fails three times at one place will not do better the fourth time.
    private static final int ATTEMPTS = 3;

    private final LogHealth logHealth = new LogHealth();
    private final DeviceOperationQueue deviceOperationQueue;
    private final SyncCoalescer syncCoalescer;

    LogIo(BlockDevice device, LogLimits limits) {
        this.deviceOperationQueue = new DeviceOperationQueue(device, limits, logHealth);
        this.syncCoalescer = new SyncCoalescer(deviceOperationQueue, logHealth);
    }

    LogHealth logHealth() {
        return logHealth;
    }

    DeviceOperationQueue deviceOperationQueue() {
        return deviceOperationQueue;
    }

    SyncCoalescer syncCoalescer() {
        return syncCoalescer;
    }

    /// Writes metadata; tries again when that fails.
    void write(WriteKind kind, MemorySegment source, long offset, Callback callback) {
        deviceOperationQueue.add(
                DeviceOperation.write(kind, source, offset, new RetryingWrite(this, kind, source, offset, callback)));
    }

    private static final class RetryingWrite implements DeviceOperation.Completion {
        private final LogIo io;
        private final WriteKind kind;
        private final MemorySegment source;
        private final long offset;
        private final Callback callback;
        private int left = ATTEMPTS - 1;

        RetryingWrite(LogIo io, WriteKind kind, MemorySegment source, long offset, Callback callback) {
            this.io = io;
            this.kind = kind;
            this.source = source;
            this.offset = offset;
            this.callback = callback;
        }

        @Override
        public void complete(IoOutcome outcome) {
            if (outcome.kind() == IoOutcome.Kind.FAILED && left > 0 && !io.logHealth.isWritingHalted()) {
                left--;
                io.deviceOperationQueue.add(DeviceOperation.write(kind, source, offset, this));
            } else {
                callback.onWritten(outcome.isDone());
            }
        }
    }
}
