package io.kvcache.tiers.movement;

import io.kvcache.core.tier.Tier;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/// Hands requests for durability to a tier. Owned by the mover's thread.
final class Flushing {

    private final MoverQueue queue;
    private final Map<Long, CompletableFuture<Boolean>> underWay = new HashMap<>();
    private @Nullable CompletableFuture<Boolean> held;
    private long nextTag;

    Flushing(MoverQueue queue) {
        this.queue = queue;
    }

    /// Asks the tier for what was asked of the queue. What was dropped before that is buried first: it is looked for
    /// after a request was taken, not before.
    void pump(Tier tier, Writing writing) {
        CompletableFuture<Boolean> next = held == null ? queue.nextFlush() : held;
        held = null;
        while (next != null) {
            if (!writing.pumpBurials(tier)) {
                held = next;
                return;
            }
            long tag = ++nextTag;
            switch (tier.flush(tag)) {
                case TAKEN -> underWay.put(tag, next);
                case GONE, REFUSED -> next.complete(false);
                case LATER -> {
                    held = next;
                    return;
                }
            }
            next = queue.nextFlush();
        }
    }

    void ended(long tag, boolean durable) {
        CompletableFuture<Boolean> flush = underWay.remove(tag);
        if (flush != null) {
            flush.complete(durable);
        }
    }

    void refuseAll() {
        underWay.values().forEach(flush -> flush.complete(false));
        underWay.clear();
        if (held != null) {
            held.complete(false);
            held = null;
        }
        for (CompletableFuture<Boolean> next = queue.nextFlush(); next != null; next = queue.nextFlush()) {
            next.complete(false);
        }
    }

    boolean idle() {
        return underWay.isEmpty() && held == null;
    }
}
