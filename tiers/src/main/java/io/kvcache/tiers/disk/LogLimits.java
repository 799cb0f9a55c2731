package io.kvcache.tiers.disk;

/// How much a [DiskLog] takes on at a time.
///
/// @param appends waiting to be written; one more is answered by FULL
/// @param reads on their way; one more is answered by FULL
/// @param groupBytes a group is closed at so many bytes, unless a single block is larger
/// @param recoveredPerTick entries told in one tick at most
/// @param failures in a row after which the device counts as failed
/// @param hangNanos an operation that takes longer makes the device count as failed; time between two ticks counts
///     for a second at most, as the process itself may have stood still
public record LogLimits(int appends, int reads, int groupBytes, int recoveredPerTick, int failures, long hangNanos) {

    public LogLimits {
        require("appends", appends);
        require("reads", reads);
        require("groupBytes", groupBytes);
        require("recoveredPerTick", recoveredPerTick);
        require("failures", failures);
        require("hangNanos", hangNanos);
    }

    private static void require(String name, long value) {
        if (value <= 0) {
            throw new IllegalArgumentException(name + " must be at least 1, is " + value);
        }
    }

    /// Groups of 8 MiB, which a fast disk writes in a few milliseconds; 16 failures in a row; 30 s to answer,
    /// after which Linux resets an NVMe disk too.
    public static LogLimits defaults() {
        return new LogLimits(256, 1024, 8 << 20, 4096, 16, 30_000_000_000L);
    }
}
