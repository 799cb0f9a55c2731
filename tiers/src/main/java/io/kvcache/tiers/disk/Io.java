package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.IoOutcome;
import java.lang.foreign.MemorySegment;

/// What every part of a log works with: transfers, syncs, and the state of the log.
final class Io {

    /// What follows a write of metadata.
    @FunctionalInterface
    interface Written {
        void written(boolean done);
    }

    /// A disk that fails three times at one place will not do better the fourth time.
    private static final int ATTEMPTS = 3;

    private final Condition condition = new Condition();
    private final Transfers transfers;
    private final Syncs syncs;

    Io(BlockDevice device, LogLimits limits) {
        this.transfers = new Transfers(device, limits, condition);
        this.syncs = new Syncs(transfers, condition);
    }

    Condition condition() {
        return condition;
    }

    Transfers transfers() {
        return transfers;
    }

    Syncs syncs() {
        return syncs;
    }

    /// Writes metadata; tries again when that fails.
    void write(WriteKind kind, MemorySegment source, long offset, Written written) {
        transfers.add(Transfer.write(kind, source, offset, new Attempts(this, kind, source, offset, written)));
    }

    private static final class Attempts implements Transfer.Ended {
        private final Io io;
        private final WriteKind kind;
        private final MemorySegment source;
        private final long offset;
        private final Written written;
        private int left = ATTEMPTS - 1;

        Attempts(Io io, WriteKind kind, MemorySegment source, long offset, Written written) {
            this.io = io;
            this.kind = kind;
            this.source = source;
            this.offset = offset;
            this.written = written;
        }

        @Override
        public void ended(IoOutcome outcome) {
            if (outcome.kind() == IoOutcome.Kind.FAILED && left > 0 && !io.condition.halted()) {
                left--;
                io.transfers.add(Transfer.write(kind, source, offset, this));
            } else {
                written.written(outcome.isDone());
            }
        }
    }
}
