package io.kvcache.tiers.movement;

import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.CopyOnWriteArrayList;

/// Who wants to hear when the slot of a record was filled, or will not be.
///
/// Whoever registers looks at the record afterwards: what ended before is not told.
///
/// **Threads.** Any.
public final class LoadListeners {

    private final ConcurrentMap<Integer, List<Runnable>> waiting = new ConcurrentHashMap<>();

    /// Has `listener` called once, soon after the next change of the record.
    public void add(int record, Runnable listener) {
        waiting.compute(record, (_, present) -> {
            List<Runnable> listeners = present == null ? new CopyOnWriteArrayList<>() : present;
            listeners.add(listener);
            return listeners;
        });
    }

    /// No longer calls `listener`.
    public void remove(int record, Runnable listener) {
        waiting.computeIfPresent(record, (_, present) -> {
            present.remove(listener);
            return present.isEmpty() ? null : present;
        });
    }

    /// A record's slot was filled, or will not be.
    public void notifyChanged(int record) {
        if (!waiting.isEmpty()) {
            List<Runnable> listeners = waiting.remove(record);
            if (listeners != null) {
                listeners.forEach(Runnable::run);
            }
        }
    }

    /// Records that somebody waits for.
    int size() {
        return waiting.size();
    }
}
