package io.kvcache.gpu.tier;

import io.kvcache.core.tier.TierListener;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

/// Uses of blocks on a device that its store has not heard of: an engine that reads them there asks nobody. When
/// more come than are told, some are left out.
///
/// **Threads.** Noted by any, told by the tier's.
final class DeviceAccessLog {

    private static final int MAX_WAITING = 4096;

    private final BlockingQueue<DeviceEntry> waiting = new ArrayBlockingQueue<>(MAX_WAITING);

    void record(DeviceEntry used) {
        waiting.offer(used);
    }

    /// Tells the store, and answers of how many uses.
    int reportTo(TierListener listener) {
        for (int told = 0; told < MAX_WAITING; told++) {
            DeviceEntry used = waiting.poll();
            if (used == null) {
                return told;
            }
            listener.onUsed(used.block(), used.place());
        }
        return MAX_WAITING;
    }
}
