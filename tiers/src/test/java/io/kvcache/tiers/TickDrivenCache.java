package io.kvcache.tiers;

import io.kvcache.core.spi.Clock;
import io.kvcache.core.spi.HostMemorySource;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.tiers.StoreContext.AccessListeners;
import io.kvcache.tiers.StoreContext.OpenHandles;
import io.kvcache.tiers.TieredKvCache.StoreShutdown;
import io.kvcache.tiers.movement.TierScheduler;
import io.kvcache.tiers.movement.TierScheduler.TierWorkerLimits;
import java.time.Duration;
import java.util.List;

/// A [TieredKvCache] without threads of its own: the caller ticks the movement between host memory and the tiers.
///
/// Simulations use it to run the production store step by step, reproducibly. A program with its own event loop can
/// drive a store the same way.
///
/// **Ownership.** Closing the cache closes the tiers. A simulated crash drops all of it without closing anything.
///
/// **Threads.** Any may call the cache. One ticks the movement; a call of the cache that waits pauses the clock, so
/// a clock of a single thread has to tick in its `pause`.
///
/// @param cache the public interface
/// @param store behind the cache
/// @param tierScheduler to tick
@SuppressWarnings("exports") // For simulations of ours.
public record TickDrivenCache(TieredKvCache cache, HostStore store, TierScheduler tierScheduler) {

    /// Parts and settings that a store is opened with.
    ///
    /// @param config of host memory
    /// @param memory where host memory comes from
    /// @param clock of all time-outs
    /// @param targets the tiers below host memory
    /// @param admission which blocks are written to them
    /// @param limits of the movement
    /// @param patience how long closing waits for open tables, and for queued writes
    public record Setup(
            HostStoreConfig config,
            HostMemorySource memory,
            Clock clock,
            List<TierScheduler.TierSpec> targets,
            TierScheduler.AdmissionConfig admission,
            TierWorkerLimits limits,
            Duration patience) {}

    /// Opens a store and its tiers.
    ///
    /// @throws RuntimeException when a tier cannot be opened; then none stays open
    public static TickDrivenCache open(Setup setup) {
        HostStore store = new HostStore(setup.config, setup.memory);
        TierScheduler tierScheduler =
                new TierScheduler(store.tierPort(), setup.clock, setup.targets, setup.admission, setup.limits);
        int opened = 0;
        try {
            while (opened < tierScheduler.tierCount()) {
                tierScheduler.open(opened++);
            }
        } catch (RuntimeException refused) {
            for (int disk = 0; disk < opened - 1; disk++) {
                tierScheduler.close(disk);
            }
            store.close();
            throw refused;
        }
        OpenHandles openHandles = new OpenHandles(false);
        AutoCloseable tiers = () -> {
            tierScheduler.await(tierScheduler.flushQueued(), setup.patience.toNanos());
            for (int disk = 0; disk < tierScheduler.tierCount(); disk++) {
                tierScheduler.close(disk);
            }
        };
        TieredKvCache cache = new TieredKvCache(
                new StoreContext(
                        store, openHandles, false, setup.clock, tierScheduler, null, true, new AccessListeners()),
                new StoreShutdown(store, openHandles, setup.clock, setup.patience, true, tiers),
                null);
        return new TickDrivenCache(cache, store, tierScheduler);
    }
}
