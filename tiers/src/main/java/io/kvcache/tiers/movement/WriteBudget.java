package io.kvcache.tiers.movement;

import java.util.concurrent.TimeUnit;

/// How much may be written, by the second and by the day: a busy GPU makes far more KV than a disk may absorb.
///
/// Two buckets that fill evenly and hold a second's and a day's worth. A write may overdraw them,
/// so that one that is larger than a second's worth goes too; the next waits until the debt is
/// paid.
///
/// **Threads.** One at a time.
public final class WriteBudget {

    /// No limit.
    public static final long UNLIMITED = Long.MAX_VALUE;

    private final Bucket second;
    private final Bucket day;

    /// @param bytesPerSecond and `bytesPerDay`: at least 1, or [#UNLIMITED]
    public WriteBudget(long bytesPerSecond, long bytesPerDay) {
        second = new Bucket(bytesPerSecond, TimeUnit.SECONDS.toNanos(1));
        day = new Bucket(bytesPerDay, TimeUnit.DAYS.toNanos(1));
    }

    /// Returns whether something may be written now.
    boolean canWrite(long nowNanos) {
        return second.canWrite(nowNanos) && day.canWrite(nowNanos);
    }

    /// @param bytes written, or negative when fewer were than was said before
    void spend(long bytes) {
        second.spend(bytes);
        day.spend(bytes);
    }

    /// The share of a day's worth that is spent, 0 to 1 and above.
    double dailyFractionSpent() {
        return day.fractionSpent();
    }

    private static final class Bucket {
        private final long limit;
        private final long periodNanos;
        private double level;
        private long filledAt;
        private boolean started;

        Bucket(long limit, long periodNanos) {
            if (limit < 1) {
                throw new IllegalArgumentException("a write budget of " + limit + " bytes; it takes 1 and up");
            }
            this.limit = limit;
            this.periodNanos = periodNanos;
            level = (double) limit;
        }

        boolean canWrite(long nowNanos) {
            if (limit == UNLIMITED) {
                return true;
            }
            if (started) {
                level = Math.min((double) limit, level + (double) limit * (nowNanos - filledAt) / periodNanos);
            }
            started = true;
            filledAt = nowNanos;
            return level > 0;
        }

        void spend(long bytes) {
            level -= limit == UNLIMITED ? 0 : (double) bytes;
        }

        double fractionSpent() {
            return limit == UNLIMITED ? 0 : 1 - level / (double) limit;
        }
    }
}
