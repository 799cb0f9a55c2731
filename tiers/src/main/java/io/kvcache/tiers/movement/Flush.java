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
    private final long unwritten;
    private final Supplier<List<CompletableFuture<Boolean>>> flushTiers;
    private @Nullable List<CompletableFuture<Boolean>> tiers;
    private boolean allWritten;

    /// @param mark of what is to be written, see [Disks#mark]
    /// @param unwritten before that was asked for, see [Disks#unwritten]
    Flush(Disks disks, long mark, long unwritten, Supplier<List<CompletableFuture<Boolean>>> flushTiers) {
        this.disks = disks;
        this.mark = mark;
        this.unwritten = unwritten;
        this.flushTiers = flushTiers;
    }

    /// Goes on as far as it can; whether it has an outcome.
    public boolean ended() {
        if (tiers == null && disks.settled() >= mark) {
            allWritten = disks.unwritten() == unwritten;
            tiers = flushTiers.get();
        }
        return tiers != null && tiers.stream().allMatch(CompletableFuture::isDone);
    }

    /// Whether all that was to be written was, and all tiers have made durable what they were given; once it
    /// has ended.
    public boolean durable() {
        return allWritten && tiers != null && tiers.stream().allMatch(flush -> flush.getNow(false));
    }
}
