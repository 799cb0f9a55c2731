package io.kvcache.tiers;

import io.kvcache.core.store.HostStore;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.tiers.movement.Arrivals;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;

/// An object that is on its way from disk, and pinned from the start: it ends with the pin kept, or given back.
///
/// **Threads.** Any.
final class ObjectArrival {

    private final HostStore store;
    private final Arrivals arrivals;
    private final int record;
    private final Runnable listener = this::told;
    private final CompletableFuture<Boolean> arrived = new CompletableFuture<>();

    /// Takes over a pin.
    private ObjectArrival(HostStore store, Arrivals arrivals, int record) {
        this.store = store;
        this.arrivals = arrivals;
        this.record = record;
    }

    /// Waits for an object that was pinned once for this.
    ///
    /// @return completes with whether it is here, and the pin the caller's, no later than after the time-out
    static CompletionStage<Boolean> of(HostStore store, Arrivals arrivals, int record, long timeoutNanos) {
        ObjectArrival arrival = new ObjectArrival(store, arrivals, record);
        arrivals.listen(record, arrival.listener);
        arrival.look();
        if (!arrival.arrived.isDone()) {
            CompletableFuture.delayedExecutor(timeoutNanos, TimeUnit.NANOSECONDS, Runnable::run)
                    .execute(arrival::giveUp);
        }
        return arrival.arrived;
    }

    /// Told once for each change: so listens for the next before looking at this one.
    private void told() {
        arrivals.listen(record, listener);
        look();
    }

    private void look() {
        int state = ControlWord.state(store.records().control(record));
        if (state == ControlWord.SEALED) {
            end(true);
        } else if (state != ControlWord.LOADING && state != ControlWord.LOADED) {
            end(false);
        }
    }

    private void giveUp() {
        end(ControlWord.state(store.records().control(record)) == ControlWord.SEALED);
    }

    private void end(boolean here) {
        arrivals.forget(record, listener);
        if (!here && !arrived.isDone() && arrived.complete(false)) {
            store.lookup().unpin(record);
        } else if (here) {
            arrived.complete(true);
        }
    }
}
