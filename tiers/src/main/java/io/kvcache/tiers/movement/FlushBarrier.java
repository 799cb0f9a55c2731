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
public final class FlushBarrier {

    private final TierPort tierPort;
    private final long mark;
    private final long unwritten;
    private final BooleanSupplier canFlushTiers;
    private final Supplier<List<CompletableFuture<Boolean>>> flushTiers;
    private @Nullable List<CompletableFuture<Boolean>> tiers;

    /// @param unwritten before it was asked for what is to be written, see [TierPort#unwrittenCount]
    /// @param ready whether the tiers may be asked for durability
    /// @param flushTiers asks them
    FlushBarrier(
            TierPort tierPort,
            long unwritten,
            BooleanSupplier ready,
            Supplier<List<CompletableFuture<Boolean>>> flushTiers) {
        this.tierPort = tierPort;
        mark = tierPort.flushMark();
        this.unwritten = unwritten;
        this.canFlushTiers = ready;
        this.flushTiers = flushTiers;
    }

    /// Goes on as far as it can; whether it has an outcome.
    public boolean advance() {
        if (tiers == null && tierPort.settledWrites() >= mark && canFlushTiers.getAsBoolean()) {
            tiers = flushTiers.get();
        }
        return tiers != null && tiers.stream().allMatch(CompletableFuture::isDone);
    }

    /// Whether all that was to be written was, and all tiers have made durable what they were given; once
    /// it has ended.
    public boolean isDurable() {
        return tierPort.unwrittenCount() == unwritten
                && tiers != null
                && tiers.stream().allMatch(flush -> flush.getNow(false));
    }
}
