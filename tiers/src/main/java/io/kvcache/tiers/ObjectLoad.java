package io.kvcache.tiers;

import io.kvcache.core.store.HostStore;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.tiers.movement.LoadListeners;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;

/// An object that is on its way from disk, and pinned from the start: it ends with the pin kept, or given back.
///
/// **Threads.** Any.
final class ObjectLoad {

    private final HostStore store;
    private final LoadListeners loadListeners;
    private final int record;
    private final Runnable listener = this::onChanged;
    private final CompletableFuture<Boolean> arrived = new CompletableFuture<>();

    /// Takes over a pin.
    private ObjectLoad(HostStore store, LoadListeners loadListeners, int record) {
        this.store = store;
        this.loadListeners = loadListeners;
        this.record = record;
    }

    /// Waits for an object that was pinned once for this.
    ///
    /// @return completes with whether it is here, and the pin the caller's, no later than after the time-out
    static CompletionStage<Boolean> of(HostStore store, LoadListeners loadListeners, int record, long timeoutNanos) {
        ObjectLoad arrival = new ObjectLoad(store, loadListeners, record);
        loadListeners.add(record, arrival.listener);
        arrival.check();
        if (!arrival.arrived.isDone()) {
            CompletableFuture.delayedExecutor(timeoutNanos, TimeUnit.NANOSECONDS, Runnable::run)
                    .execute(arrival::onTimeout);
        }
        return arrival.arrived;
    }

    /// Told once for each change: so listens for the next before looking at this one.
    private void onChanged() {
        loadListeners.add(record, listener);
        check();
    }

    private void check() {
        int state = ControlWord.state(store.records().control(record));
        if (state == ControlWord.SEALED) {
            complete(true);
        } else if (state != ControlWord.LOADING && state != ControlWord.LOADED) {
            complete(false);
        }
    }

    private void onTimeout() {
        complete(ControlWord.state(store.records().control(record)) == ControlWord.SEALED);
    }

    private void complete(boolean here) {
        loadListeners.remove(record, listener);
        if (!here && !arrived.isDone() && arrived.complete(false)) {
            store.lookup().unpin(record);
        } else if (here) {
            arrived.complete(true);
        }
    }
}
