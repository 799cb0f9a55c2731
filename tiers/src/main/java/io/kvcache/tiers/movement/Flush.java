package io.kvcache.tiers.movement;

import io.kvcache.core.store.TierPort;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A flush on its way: first everything that was sealed is written, then the tiers make it durable.
///
/// **Threads.** One at a time.
public final class Flush {

    private final TierPort disks;
    private final long mark;
    private final long unwritten;
    private final BooleanSupplier ready;
    private final Supplier<List<CompletableFuture<Boolean>>> flushTiers;
    private @Nullable List<CompletableFuture<Boolean>> tiers;

    /// @param unwritten before it was asked for what is to be written, see [TierPort#unwrittenCount]
    /// @param ready whether the tiers may be asked for durability
    /// @param flushTiers asks them
    Flush(
            TierPort disks,
            long unwritten,
            BooleanSupplier ready,
            Supplier<List<CompletableFuture<Boolean>>> flushTiers) {
        this.disks = disks;
        mark = disks.flushMark();
        this.unwritten = unwritten;
        this.ready = ready;
        this.flushTiers = flushTiers;
    }

    /// Goes on as far as it can; whether it has an outcome.
    public boolean ended() {
        if (tiers == null && disks.settledWrites() >= mark && ready.getAsBoolean()) {
            tiers = flushTiers.get();
        }
        return tiers != null && tiers.stream().allMatch(CompletableFuture::isDone);
    }

    /// Whether all that was to be written was, and all tiers have made durable what they were given; once
    /// it has ended.
    public boolean durable() {
        return disks.unwrittenCount() == unwritten
                && tiers != null
                && tiers.stream().allMatch(flush -> flush.getNow(false));
    }
}
