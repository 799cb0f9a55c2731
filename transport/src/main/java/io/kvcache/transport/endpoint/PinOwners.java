package io.kvcache.transport.endpoint;

import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;

/// How many sessions want each pin that a hint asked for, of all endpoints that serve a store: it
/// ends with the last of them. A pin that the store's own process asked for is not known here, so
/// it ends then, too.
///
/// **Threads.** Any.
final class PinOwners {

    private static final Map<KvCache, PinOwners> BY_STORE = new WeakHashMap<>();

    private final Map<BlockKey, Integer> sessions = new HashMap<>();

    private PinOwners() {}

    /// Those of a store, for as long as it is used.
    static PinOwners of(KvCache store) {
        synchronized (BY_STORE) {
            return BY_STORE.computeIfAbsent(store, _ -> new PinOwners());
        }
    }

    /// Asks for a pin, or for it anew.
    ///
    /// @param again whether the session has it already
    /// @return whether the store took it
    synchronized boolean pin(KvCache cache, Hint.Pin pin, boolean again) {
        boolean taken = cache.hint(pin);
        if (taken && !again) {
            sessions.merge(pin.key(), 1, Integer::sum);
        }
        return taken;
    }

    /// A session wants a pin no more.
    synchronized void end(KvCache cache, Namespace namespace, BlockKey key) {
        if (sessions.merge(key, -1, Integer::sum) > 0) {
            return;
        }
        sessions.remove(key);
        try {
            cache.hint(new Hint.Pin(BlockChain.ofKeys(namespace, List.of(key)), 0));
        } catch (IllegalStateException closed) {
            // The store has let go of all pins by itself.
        }
    }
}
