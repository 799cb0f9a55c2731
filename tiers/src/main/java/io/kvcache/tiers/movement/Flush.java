package io.kvcache.tiers.movement;

import io.kvcache.core.store.Disks;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A flush on its way: first everything that was sealed is written, then the tiers make it durable.
///
/// **Threads.** One at a time.
public final class Flush {

    private final Disks disks;
    private final long mark;
    private final long failedBefore;
    private final Supplier<List<CompletableFuture<Boolean>>> flushTiers;
    private @Nullable List<CompletableFuture<Boolean>> tiers;

    /// @param failedBefore what [Disks#failed] was before anything was queued for this
    Flush(Disks disks, long failedBefore, Supplier<List<CompletableFuture<Boolean>>> flushTiers) {
        this.disks = disks;
        this.failedBefore = failedBefore;
        mark = disks.mark();
        this.flushTiers = flushTiers;
    }

    /// Goes on as far as it can; whether it has an outcome.
    public boolean ended() {
        if (tiers == null && disks.settled() >= mark) {
            tiers = flushTiers.get();
        }
        return tiers != null && tiers.stream().allMatch(CompletableFuture::isDone);
    }

    /// Whether nothing failed to be written meanwhile and all tiers have made durable what they were given;
    /// once it has
    /// ended.
    public boolean durable() {
        return tiers != null && disks.failed() == failedBefore && tiers.stream().allMatch(flush -> flush.getNow(false));
    }
}
