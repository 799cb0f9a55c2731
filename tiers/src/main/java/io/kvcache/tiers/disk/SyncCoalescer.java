package io.kvcache.tiers.disk;

import io.kvcache.tiers.device.IoOutcome;
import java.util.ArrayList;
import java.util.List;

/// Syncs shared by all who need one: at most one is on its way, and who asks meanwhile shares the next, since
/// a sync covers only what was done before it began.
final class SyncCoalescer {

    /// What follows a sync.
    @FunctionalInterface
    interface Callback {
        void onSynced(boolean durable);
    }

    private final DeviceOperationQueue deviceOperationQueue;
    private final LogHealth logHealth;
    private List<Callback> waiting = new ArrayList<>();
    private List<Callback> covered = new ArrayList<>();
    private boolean inFlight;

    SyncCoalescer(DeviceOperationQueue deviceOperationQueue, LogHealth logHealth) {
        this.deviceOperationQueue = deviceOperationQueue;
        this.logHealth = logHealth;
    }

    /// Makes durable all writes that have ended by now.
    void request(Callback callback) {
        waiting.add(callback);
    }

    void pump() {
        if (inFlight || waiting.isEmpty()) {
            return;
        }
        covered = waiting;
        waiting = new ArrayList<>();
        if (logHealth.isWritingHalted()) {
            notifyCovered(false);
        } else {
            inFlight = true;
            deviceOperationQueue.add(DeviceOperation.sync(this::onComplete));
        }
    }

    private void onComplete(IoOutcome outcome) {
        inFlight = false;
        notifyCovered(outcome.isDone());
    }

    private void notifyCovered(boolean durable) {
        for (Callback each : covered) {
            each.onSynced(durable);
        }
    }

    boolean isIdle() {
        return !inFlight && waiting.isEmpty();
    }
}
