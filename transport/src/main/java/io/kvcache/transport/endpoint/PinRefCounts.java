package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockKey;
import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;

/// How many sessions want each pin that a hint asked for, of all endpoints that serve a store: it
/// ends with the last of them. A pin that the store's own process asked for is not known here, so
/// it ends then, too.
///
/// **Threads.** Any.
final class PinRefCounts {

    private static final Map<KvCache, PinRefCounts> BY_STORE = new WeakHashMap<>();

    private final Map<BlockKey, Integer> sessions = new HashMap<>();

    private PinRefCounts() {}

    /// Those of a store, for as long as it is used.
    static PinRefCounts of(KvCache store) {
        synchronized (BY_STORE) {
            return BY_STORE.computeIfAbsent(store, _ -> new PinRefCounts());
        }
    }

    /// Asks for a pin, or for it anew.
    ///
    /// @param again whether the session has it already
    /// @return whether the store took it
    synchronized boolean pin(SessionPins.PinRequest pin, boolean again) {
        boolean taken = pin.pinAction().getAsBoolean();
        if (taken && !again) {
            sessions.merge(pin.key(), 1, Integer::sum);
        }
        return taken;
    }

    /// A session wants a pin no more.
    ///
    /// @param unpin ends it in the store
    synchronized void unpin(BlockKey key, Runnable unpin) {
        if (sessions.merge(key, -1, Integer::sum) > 0) {
            return;
        }
        sessions.remove(key);
        try {
            unpin.run();
        } catch (IllegalStateException closed) {
            // The store has let go of all pins by itself.
        }
    }
}
