package io.kvcache.tiers.movement;

import io.kvcache.core.tier.Tier;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/// Hands requests for durability to a tier. Owned by the mover's thread.
final class Flushing {

    private final MoverQueue queue;
    private final Map<Long, Begun> underWay = new HashMap<>();
    private @Nullable CompletableFuture<Boolean> held;
    private long nextTag;

    /// A flush on its way, and the last burial that it covers, see [Writing#lastTaken].
    private record Begun(CompletableFuture<Boolean> flush, long burials) {}

    Flushing(MoverQueue queue) {
        this.queue = queue;
    }

    /// Asks the tier for what was asked of the queue. What was dropped before that is buried first: it is looked for
    /// after a request was taken, not before.
    void pump(Tier tier, Writing writing) {
        CompletableFuture<Boolean> next = held == null ? queue.nextFlush() : held;
        held = null;
        if (next == null && underWay.isEmpty() && writing.wantsFlush()) {
            next = new CompletableFuture<>(); // for the burials' sake alone
        }
        while (next != null) {
            if (!writing.pumpBurials(tier)) {
                held = next;
                return;
            }
            long tag = ++nextTag;
            switch (tier.flush(tag)) {
                case ACCEPTED -> underWay.put(tag, new Begun(next, writing.lastTaken()));
                case GONE, REJECTED -> next.complete(false);
                case RETRY -> {
                    held = next;
                    return;
                }
            }
            next = queue.nextFlush();
        }
    }

    void ended(long tag, boolean durable, Writing writing) {
        Begun begun = underWay.remove(tag);
        if (begun != null) {
            if (durable) {
                writing.synced(begun.burials);
            }
            begun.flush.complete(durable);
        }
    }

    void refuseAll() {
        underWay.values().forEach(begun -> begun.flush.complete(false));
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
