package io.kvcache.bench.transport;

import io.kvcache.bench.suite.Threshold;
import io.kvcache.bench.transport.SharedMemoryComparison.SharedMemoryAccess;
import io.kvcache.bench.transport.TransferSpec.TransferOperation;

/// What the remote cache has to reach, beside what was measured in the same run. What has no budget is shown only.
public final class TransportThresholds {

    private static final Threshold NONE = new Threshold.NoThreshold();
    private static final int MIB = 1 << 20;

    /// Of a bare responder, blocks of 1 MiB and more with more than one in flight.
    private static final double BASELINE_TCP = 0.9;

    /// Of bare Aeron, blocks of 1 MiB.
    private static final double BASELINE_AERON = 0.6;

    /// Blocks of 1 MiB over Aeron's IPC.
    private static final double AERON_GIGABYTES = 2;

    /// Of Redis, with more than one in flight.
    private static final double REDIS_OF_1_MIB = 1.4;

    private static final double REDIS_OF_4_MIB = 1.0;

    /// Of a bare copy, blocks of 1 MiB and more that are copied without a message, one at a time.
    private static final double COPY = 0.85;

    /// Half of the copies of 64 KiB without a message.
    private static final double SMALL_COPY_MICROS = 8;

    /// Half of the views in place, while whoever answers is awake, and after a millisecond in which he was not.
    private static final double VIEW_MICROS = 25;

    private static final double IDLE_VIEW_MICROS = 120;

    /// Of the server's process for a block that is copied without a message: none, but for what goes on anyway.
    private static final double SERVER_MICROS = 1;

    /// Half of the matches of 1,024 keys over Aeron's IPC.
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

    /// For microseconds that half take, over shared memory.
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
