package io.kvcache.bench.server;

import java.time.Duration;
import java.util.function.Consumer;

/// How thoroughly to measure, and who is told of it.
///
/// @param count times that each load is put on each server, in turn, so that what else the machine does meets all
/// @param time of a load
/// @param mostHostBytes for values in a part that can do with less, so that a test can run it beside others
/// @param progress told what is about to run
public record Rounds(int count, Duration time, long mostHostBytes, Consumer<String> progress) {

    /// More than the largest working set of a [Load].
    private static final long QUICK_HOST_BYTES = 768L << 20;

    /// Enough to find the middle of, with a second each.
    public static Rounds full(Consumer<String> progress) {
        return new Rounds(5, Duration.ofSeconds(1), Long.MAX_VALUE, progress);
    }

    /// Shows what is broken, not what is slow.
    public static Rounds quick(Consumer<String> progress) {
        return new Rounds(1, Duration.ofMillis(200), QUICK_HOST_BYTES, progress);
    }

    /// What a part gives a server for values, who wants so much.
    long hostBytes(long wanted) {
        return Math.min(wanted, mostHostBytes);
    }

    void say(String what) {
        progress.accept(what);
    }
}
