package io.kvcache.transport.endpoint;

import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.wire.ObjectKeysCodec;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.BooleanSupplier;

/// Pins that one session's client requested by hints. They end with the session, or earlier at their time.
///
/// Some may have expired unnoticed, so a session with too many gives up the oldest.
///
/// **Threads.** Any.
final class SessionPins {

    /// Pins of one session: as many as one message can ask for.
    static final int MAX_PINS = ObjectKeysCodec.MAX_KEYS;

    private final Map<BlockKey, Runnable> ends = new LinkedHashMap<>();
    private boolean closed;

    /// A requested pin, of a chain or of an object.
    ///
    /// @param key by which it is known
    /// @param pinAction asks the store for it, and answers whether it was taken
    /// @param unpin ends it in the store; kept until then
    record PinRequest(BlockKey key, BooleanSupplier pinAction, Runnable unpin) {

        static PinRequest of(KvCache cache, Hint.Pin pin) {
            Namespace namespace = pin.chain().namespace();
            BlockKey key = pin.key(); // not the chain, which may be long
            return new PinRequest(
                    key,
                    () -> cache.hint(pin),
                    () -> cache.hint(new Hint.Pin(BlockChain.ofKeys(namespace, List.of(key)), Duration.ZERO)));
        }
    }

    /// Applies a hint.
    ///
    /// @param forNanos 0 to end the pin
    /// @return whether it was taken, or ended
    synchronized boolean apply(PinRefCounts owners, PinRequest pin, long forNanos) {
        BlockKey key = pin.key();
        if (forNanos == 0) {
            return end(key);
        }
        boolean taken = !closed && owners.pin(pin, ends.containsKey(key));
        if (taken) {
            Runnable unpin = pin.unpin();
            ends.remove(key);
            ends.put(key, () -> owners.unpin(key, unpin));
            if (ends.size() > MAX_PINS) {
                var _ = end(ends.keySet().iterator().next());
            }
        }
        return taken;
    }

    private boolean end(BlockKey key) {
        Runnable end = ends.remove(key);
        if (end != null) {
            end.run();
        }
        return end != null;
    }

    /// Ends all of them.
    synchronized void end() {
        closed = true;
        ends.values().forEach(Runnable::run);
        ends.clear();
    }

    /// Counts the sessions that want each pin, over all endpoints that serve a store. A pin ends with the last of
    /// them. Pins of the store's own process are not counted, so such a pin ends then too.
    ///
    /// **Threads.** Any.
    static final class PinRefCounts {

        private static final Map<KvCache, PinRefCounts> BY_STORE = new WeakHashMap<>();

        private final Map<BlockKey, Integer> sessions = new HashMap<>();

        private PinRefCounts() {}

        /// Returns the counts of a store, for as long as it is used.
        static PinRefCounts of(KvCache store) {
            synchronized (BY_STORE) {
                return BY_STORE.computeIfAbsent(store, _ -> new PinRefCounts());
            }
        }

        /// Requests a pin, or renews it.
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

        /// Removes a pin of a session.
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
                // The store has ended all pins by itself.
            }
        }
    }
}
