package io.kvcache.tiers.movement;

import io.kvcache.core.tier.Tier;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/// Hands requests for durability to a tier. Owned by the mover's thread.
final class FlushPump {

    private final TierWorkerQueue queue;
    private final Map<Long, InFlightFlush> inFlight = new HashMap<>();
    private @Nullable CompletableFuture<Boolean> held;
    private long nextTag;

    /// A flush on its way, and the last burial that it covers, see [WritePump#lastAcceptedTombstone].
    private record InFlightFlush(CompletableFuture<Boolean> flush, long lastTombstone) {}

    FlushPump(TierWorkerQueue queue) {
        this.queue = queue;
    }

    /// Asks the tier for what was asked of the queue. What was dropped before that is buried first: it is looked for
    /// after a request was taken, not before.
    void pump(Tier tier, WritePump writePump) {
        CompletableFuture<Boolean> next = held == null ? queue.nextFlush() : held;
        held = null;
        if (next == null && inFlight.isEmpty() && writePump.needsFlush()) {
            next = new CompletableFuture<>(); // for the burials' sake alone
        }
        while (next != null) {
            if (!writePump.pumpTombstones(tier)) {
                held = next;
                return;
            }
            long tag = ++nextTag;
            switch (tier.flush(tag)) {
                case ACCEPTED -> inFlight.put(tag, new InFlightFlush(next, writePump.lastAcceptedTombstone()));
                case GONE, REJECTED -> next.complete(false);
                case RETRY -> {
                    held = next;
                    return;
                }
            }
            next = queue.nextFlush();
        }
    }

    void onFlushed(long tag, boolean durable, WritePump writePump) {
        InFlightFlush inFlightFlush = inFlight.remove(tag);
        if (inFlightFlush != null) {
            if (durable) {
                writePump.onSynced(inFlightFlush.lastTombstone);
            }
            inFlightFlush.flush.complete(durable);
        }
    }

    void rejectAll() {
        inFlight.values().forEach(inFlightFlush -> inFlightFlush.flush.complete(false));
        inFlight.clear();
        if (held != null) {
            held.complete(false);
            held = null;
        }
        for (CompletableFuture<Boolean> next = queue.nextFlush(); next != null; next = queue.nextFlush()) {
            next.complete(false);
        }
    }

    boolean isIdle() {
        return inFlight.isEmpty() && held == null;
    }
}
