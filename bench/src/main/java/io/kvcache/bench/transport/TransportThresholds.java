package io.kvcache.bench.transport;

import io.kvcache.bench.suite.Threshold;
import io.kvcache.bench.transport.SharedMemoryComparison.SharedMemoryAccess;
import io.kvcache.bench.transport.TransferSpec.TransferOperation;

/// The limits that the remote cache has to meet, some as a ratio to a baseline of the same run. Figures without a
/// limit are only shown.
public final class TransportThresholds {

    private static final Threshold NONE = new Threshold.NoThreshold();
    private static final int MIB = 1 << 20;

    /// Least ratio to a bare responder for blocks of 1 MiB and more, with more than one in flight.
    private static final double BASELINE_TCP = 0.9;

    /// Least ratio to bare Aeron for blocks of 1 MiB.
    private static final double BASELINE_AERON = 0.6;

    /// Least GB/s for blocks of 1 MiB over Aeron's IPC.
    private static final double AERON_GIGABYTES = 2;

    /// Least ratio to Redis for blocks of 1 MiB, with more than one in flight.
    private static final double REDIS_OF_1_MIB = 1.4;

    private static final double REDIS_OF_4_MIB = 1.0;

    /// Least ratio to a bare copy for blocks of 1 MiB and more, copied one at a time without a message.
    private static final double COPY = 0.85;

    /// Most microseconds for the median copy of 64 KiB without a message.
    private static final double SMALL_COPY_MICROS = 8;

    /// Most microseconds for the median view in place: while the server's thread is awake here, and below after a
    /// millisecond of its sleep.
    private static final double VIEW_MICROS = 25;

    private static final double IDLE_VIEW_MICROS = 120;

    /// Most processor microseconds of the server for a block that is copied without a message: only its background
    /// work.
    private static final double SERVER_MICROS = 1;

    /// Most microseconds for the median match of 1,024 keys over Aeron's IPC.
    private static final double MATCH_MICROS = 200;

    private TransportThresholds() {}

    /// For a ratio of bytes a second.
    public static Threshold ratioToBaselineTcp(TransferSpec transferSpec) {
        boolean judged = transferSpec.inFlight() > 1
                && transferSpec.bytes() >= MIB
                && transferSpec.operation() == TransferOperation.ACQUIRE;
        return judged ? new Threshold.RatioAtLeast(BASELINE_TCP) : NONE;
    }

    /// For a ratio of bytes a second.
    public static Threshold ratioToBaselineAeron(TransferSpec transferSpec) {
        return transferSpec.bytes() == MIB ? new Threshold.RatioAtLeast(BASELINE_AERON) : NONE;
    }

    /// For GB/s by IPC.
    public static Threshold aeronSpeed(TransferSpec transferSpec) {
        boolean judged = transferSpec.bytes() == MIB && transferSpec.operation() == TransferOperation.ACQUIRE;
        return judged ? new Threshold.AtLeast(AERON_GIGABYTES) : NONE;
    }

    /// For a ratio of bytes a second.
    public static Threshold ratioToRedis(TransferSpec transferSpec) {
        if (transferSpec.inFlight() == 1 || transferSpec.operation() != TransferOperation.ACQUIRE) {
            return NONE;
        }
        return switch (transferSpec.bytes()) {
            case MIB -> new Threshold.RatioAtLeast(REDIS_OF_1_MIB);
            case 4 * MIB -> new Threshold.RatioAtLeast(REDIS_OF_4_MIB);
            default -> NONE;
        };
    }

    /// For a ratio of bytes a second, over shared memory.
    static Threshold sharedMemoryRatio(SharedMemoryAccess use, TransferSpec transferSpec) {
        boolean judged = use == SharedMemoryAccess.COPY && transferSpec.inFlight() == 1 && transferSpec.bytes() >= MIB;
        return judged ? new Threshold.RatioAtLeast(COPY) : NONE;
    }

    /// For the median of microseconds, over shared memory.
    static Threshold medianMicros(SharedMemoryAccess use, TransferSpec transferSpec) {
        if (transferSpec.inFlight() > 1) {
            return NONE;
        }
        return switch (use) {
            case COPY -> transferSpec.bytes() < MIB ? new Threshold.AtMost(SMALL_COPY_MICROS) : NONE;
            case VIEW -> new Threshold.AtMost(VIEW_MICROS);
            case VIEW_IDLE -> new Threshold.AtMost(IDLE_VIEW_MICROS);
        };
    }

    /// For microseconds of the server's processor a block, over shared memory.
    static Threshold serverMicros(SharedMemoryAccess use) {
        return use == SharedMemoryAccess.COPY ? new Threshold.AtMost(SERVER_MICROS) : NONE;
    }

    /// For microseconds that half of the matches take.
    static Threshold matchMicros(String by) {
        return by.equals("aeron") ? new Threshold.AtMost(MATCH_MICROS) : NONE;
    }
}
