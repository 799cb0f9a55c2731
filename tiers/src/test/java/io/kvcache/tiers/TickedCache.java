package io.kvcache.tiers;

import io.kvcache.core.Clock;
import io.kvcache.core.memory.HostMemorySource;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStoreConfig;
import io.kvcache.tiers.movement.Movement;
import io.kvcache.tiers.movement.MoverLimits;
import java.time.Duration;
import java.util.List;

/// A store with tiers and without threads: whoever has it ticks the movement.
///
/// **Ownership.** Closing the cache closes the tiers. A crash leaves all of it alone.
///
/// @param store behind the cache
/// @param movement to be ticked, also while a call of the cache lets the clock pause
public record TickedCache(TieredKvCache cache, HostStore store, Movement movement) {

    /// How it is set up.
    ///
    /// @param patience how long closing waits for tables, and for what waits to be written
    public record Setup(
            HostStoreConfig config,
            HostMemorySource memory,
            Clock clock,
            List<Movement.Target> targets,
            Movement.Admitting admitting,
            MoverLimits limits,
            Duration patience) {}

    /// Opens a store and its tiers.
    ///
    /// @throws RuntimeException when a tier is refused; then none is left open
    public static TickedCache open(Setup setup) {
        HostStore store = new HostStore(setup.config, setup.memory);
        Movement movement = new Movement(store.disks(), setup.clock, setup.targets, setup.admitting, setup.limits);
        int opened = 0;
        try {
            while (opened < movement.tiers()) {
                movement.open(opened++);
            }
        } catch (RuntimeException refused) {
            for (int disk = 0; disk < opened - 1; disk++) {
                movement.close(disk);
            }
            store.close();
            throw refused;
        }
        Holders holders = new Holders(false);
        AutoCloseable tiers = () -> {
            movement.await(movement.flushQueued(), setup.patience.toNanos());
            for (int disk = 0; disk < movement.tiers(); disk++) {
                movement.close(disk);
            }
        };
        TieredKvCache cache = new TieredKvCache(
                new HostTable.Source(store, holders, false, setup.clock, movement, null, true),
                new Closing(store, holders, setup.clock, setup.patience, true, tiers),
                null);
        return new TickedCache(cache, store, movement);
    }
}
