package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.Executor;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/// What a [DiskLog] gets from the store around it.
///
/// @param index knows what lies where
/// @param sink hears what became of what was asked
/// @param memory gives so many bytes of native memory, whole pages at an aligned address, that stay until the
///     device is closed. It is asked twice, at opening, by the log's thread, while nothing is on its way to
///     the device, so it may register what it gives with the device
/// @param checksumExecutor computes checksums of large blocks beside the log's thread, until the log is idle and no
///     longer ticked; null when the log's thread does that too
public record LogContext(
        DiskIndex index,
        DiskLogCompletions sink,
        LongFunction<MemorySegment> memory,
        @Nullable Executor checksumExecutor) {

    /// One whose log works on its own thread alone.
    public LogContext(DiskIndex index, DiskLogCompletions sink, LongFunction<MemorySegment> memory) {
        this(index, sink, memory, null);
    }
}
