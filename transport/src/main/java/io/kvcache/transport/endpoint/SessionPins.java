package io.kvcache.transport.endpoint;

import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.util.LinkedHashMap;
import java.util.Map;

/// The pins that one session's client asked for by hints. They end with the session, if not before by their
/// time.
///
/// Some may be over by their time: so a session that has many gives up the one that it asked for first.
///
/// **Threads.** Any.
final class SessionPins {

    private static final int MOST = 1024;

    private final Map<BlockKey, Runnable> ends = new LinkedHashMap<>();
    private boolean over;

    /// Acts on a hint.
    ///
    /// @return whether it was taken
    synchronized boolean take(PinOwners owners, KvCache cache, Hint.Pin pin) {
        if (pin.chain().length() == 0) {
            return cache.hint(pin);
        }
        BlockKey key = pin.key();
        if (pin.forNanos() == 0) {
            end(key);
            return true;
        }
        boolean taken = !over && owners.pin(cache, pin, ends.containsKey(key));
        if (taken) {
            Namespace namespace = pin.chain().namespace();
            ends.remove(key);
            ends.put(key, () -> owners.end(cache, namespace, key));
            if (ends.size() > MOST) {
                end(ends.keySet().iterator().next());
            }
        }
        return taken;
    }

    private void end(BlockKey key) {
        Runnable end = ends.remove(key);
        if (end != null) {
            end.run();
        }
    }

    /// Ends all of them.
    synchronized void end() {
        over = true;
        ends.values().forEach(Runnable::run);
        ends.clear();
    }
}
