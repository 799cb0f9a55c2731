package io.kvcache.tiers.movement;

import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLongArray;

/// Spreads writes over several tiers by their size: none gets ahead of another that can be written
/// to by more than a little.
///
/// **Threads.** Any.
public final class WriteBalancer {

    /// How far one tier may be ahead: a few groups of the log, so that each has something to do.
    private static final long SLACK_BYTES = 64L << 20;

    private final long[] limits;
    private final AtomicLongArray written;
    private final AtomicIntegerArray writable;

    /// @param limits bytes of each tier, by number
    public WriteBalancer(long... limits) {
        this.limits = limits.clone();
        written = new AtomicLongArray(limits.length);
        writable = new AtomicIntegerArray(limits.length);
    }

    void setWritable(int disk, boolean can) {
        writable.set(disk, can ? 1 : 0);
    }

    /// Whether any tier can be written to.
    boolean isAnyWritable() {
        for (int disk = 0; disk < limits.length; disk++) {
            if (writable.get(disk) == 1) {
                return true;
            }
        }
        return false;
    }

    void addWritten(int disk, long bytes) {
        written.addAndGet(disk, bytes);
    }

    boolean canWrite(int disk) {
        double mine = fillFraction(disk, written.get(disk) - SLACK_BYTES);
        for (int other = 0; other < limits.length; other++) {
            if (other != disk && writable.get(other) == 1 && fillFraction(other, written.get(other)) < mine) {
                return false;
            }
        }
        return true;
    }

    private double fillFraction(int disk, long bytes) {
        return (double) bytes / limits[disk];
    }
}
