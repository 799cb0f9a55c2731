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
final class Lane {

    /// Batches on their way: enough to keep a copy engine fed while the thread does something else.
    private static final int DEPTH = 16;

    /// Pieces that gather while the device is at it; beyond that they had better wait where they can be
    /// given up.
    private static final int MOST_PIECES = 4096;

    private final ResourceScope holdings = new ResourceScope();
    private final DeviceStream stream;
    private final Deque<DeviceEvent> free = new ArrayDeque<>();
    private final Deque<Trip> underWay = new ArrayDeque<>();
    private final CopyBatch batch;
    private List<Outcome> gathering = new ArrayList<>();

    /// What becomes of a copy.
    @FunctionalInterface
    interface Outcome {

        /// The memory is its owner's again.
        ///
        /// @param copied whether the bytes are there
        void ended(boolean copied);
    }

    private record Trip(DeviceEvent event, List<Outcome> outcomes) {}

    Lane(DeviceDriver driver, CopyBatch batch) {
        this.batch = batch;
        try {
            stream = holdings.register(driver.openStream(Priority.HIGH), DeviceStream::close);
            for (int i = 0; i < DEPTH; i++) {
                free.add(holdings.register(driver.openEvent(), DeviceEvent::close));
            }
        } catch (DeviceException refused) {
            throw holdings.releaseAfter(refused);
        }
    }

    /// Where the next pieces go; [#then] says what is to come of them.
    CopyBatch batch() {
        return batch;
    }

    void then(Outcome outcome) {
        gathering.add(outcome);
    }

    boolean full() {
        return batch.pieces() >= MOST_PIECES;
    }

    /// Hands the batch to the device, unless it has enough.
    void submit() {
        if (gathering.isEmpty() || free.isEmpty()) {
            return;
        }
        List<Outcome> outcomes = gathering;
        DeviceEvent event = free.remove();
        underWay.add(new Trip(event, outcomes)); // before the device has it: if that fails, they are told here
        gathering = new ArrayList<>();
        stream.copy(batch);
        batch.clear();
        stream.record(event);
    }

    /// Tells what has ended.
    ///
    /// @return how much
    int poll() {
        int ended = 0;
        while (!underWay.isEmpty() && underWay.getFirst().event.isReached()) {
            Trip trip = underWay.remove();
            free.add(trip.event);
            trip.outcomes.forEach(outcome -> outcome.ended(true));
            ended += trip.outcomes.size();
        }
        return ended;
    }

    /// Tells all that has not ended that it never will; the device does nothing any more.
    void abandon() {
        for (Trip trip = underWay.poll(); trip != null; trip = underWay.poll()) {
            free.add(trip.event);
            trip.outcomes.forEach(outcome -> outcome.ended(false));
        }
        gathering.forEach(outcome -> outcome.ended(false));
        gathering.clear();
        batch.clear();
    }

    /// Whether something is on its way, or gathers.
    boolean busy() {
        return !underWay.isEmpty() || !gathering.isEmpty();
    }

    /// Whether the device is at nothing of it.
    boolean quiet() {
        return stream.isIdle();
    }

    void close() {
        holdings.releaseAll();
    }
}
