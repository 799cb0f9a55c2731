package io.kvcache.gpu.tier;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.ResourceScope;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/// Copies of one direction: they gather in a batch, travel by a stream of their own, and are told once
/// the event behind their batch is reached.
///
/// Owned by the tier's thread.
final class CopyQueue {

    /// Batches on their way: enough to keep a copy engine fed while the thread does something else.
    private static final int DEPTH = 16;

    /// Pieces that gather while the device is at it; beyond that they had better wait where they can be
    /// given up.
    private static final int MAX_PIECES = 4096;

    private final ResourceScope resources = new ResourceScope();
    private final DeviceStream stream;
    private final Deque<DeviceEvent> free = new ArrayDeque<>();
    private final Deque<InFlightBatch> inFlight = new ArrayDeque<>();
    private final CopyBatch batch;
    private List<CopyCallback> callbacks = new ArrayList<>();

    @FunctionalInterface
    interface CopyCallback {

        /// The memory is its owner's again.
        ///
        /// @param copied whether the bytes are there
        void ended(boolean copied);
    }

    private record InFlightBatch(DeviceEvent event, List<CopyCallback> outcomes) {}

    CopyQueue(DeviceDriver driver, CopyBatch batch) {
        this.batch = batch;
        try {
            stream = resources.register(driver.openStream(Priority.HIGH), DeviceStream::close);
            for (int i = 0; i < DEPTH; i++) {
                free.add(resources.register(driver.openEvent(), DeviceEvent::close));
            }
        } catch (DeviceException refused) {
            throw resources.releaseAfter(refused);
        }
    }

    /// Returns the batch for the next pieces; [#onComplete] sets what happens afterwards.
    CopyBatch batch() {
        return batch;
    }

    void onComplete(CopyCallback copyCallback) {
        callbacks.add(copyCallback);
    }

    boolean isFull() {
        return batch.pieces() >= MAX_PIECES;
    }

    /// Hands the batch to the device, unless it has enough.
    void submit() {
        if (callbacks.isEmpty() || free.isEmpty()) {
            return;
        }
        List<CopyCallback> outcomes = callbacks;
        DeviceEvent event = free.remove();
        inFlight.add(new InFlightBatch(event, outcomes)); // before the device has it: if that fails, they are told here
        callbacks = new ArrayList<>();
        stream.copy(batch);
        batch.clear();
        stream.record(event);
    }

    /// Tells what has ended.
    ///
    /// @return how much
    int poll() {
        int ended = 0;
        while (!inFlight.isEmpty() && inFlight.getFirst().event.isReached()) {
            InFlightBatch inFlightBatch = inFlight.remove();
            free.add(inFlightBatch.event);
            inFlightBatch.outcomes.forEach(copyCallback -> copyCallback.ended(true));
            ended += inFlightBatch.outcomes.size();
        }
        return ended;
    }

    /// Tells all that has not ended that it never will; the device does nothing any more.
    void abandon() {
        for (InFlightBatch inFlightBatch = inFlight.poll(); inFlightBatch != null; inFlightBatch = inFlight.poll()) {
            free.add(inFlightBatch.event);
            inFlightBatch.outcomes.forEach(copyCallback -> copyCallback.ended(false));
        }
        callbacks.forEach(copyCallback -> copyCallback.ended(false));
        callbacks.clear();
        batch.clear();
    }

    /// Returns whether copies are in flight, or gather in the batch.
    boolean isBusy() {
        return !inFlight.isEmpty() || !callbacks.isEmpty();
    }

    /// Returns whether the device has no work of it.
    boolean isIdle() {
        return stream.isIdle();
    }

    void close() {
        resources.releaseAll();
    }
}
