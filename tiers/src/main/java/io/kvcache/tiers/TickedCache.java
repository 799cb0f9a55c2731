package io.kvcache.tiers;

import io.kvcache.core.Clock;
import io.kvcache.core.memory.HostMemorySource;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStoreConfig;
import io.kvcache.tiers.movement.Movement;
import io.kvcache.tiers.movement.MoverLimits;
import java.time.Duration;
import java.util.List;

/// A [TieredKvCache] without threads of its own: the caller ticks the movement between host memory and the tiers.
///
/// Simulations use it to run the production store step by step, reproducibly. A program with its own event loop can
/// drive a store the same way.
///
/// **Ownership.** Closing the cache closes the tiers. A simulated crash drops all of it without closing anything.
///
/// **Threads.** Any may call the cache. One ticks the movement; a call of the cache that waits pauses the clock, so a
/// clock of a single thread has to tick in its `pause`.
///
/// @param cache the public interface
/// @param store behind the cache
/// @param movement to tick
public record TickedCache(TieredKvCache cache, HostStore store, Movement movement) {

    /// What a store is opened with.
    ///
    /// @param config of host memory
    /// @param memory where host memory comes from
    /// @param clock of all time-outs
    /// @param targets the tiers below host memory
    /// @param admitting which blocks are written to them
    /// @param limits of the movement
    /// @param patience how long closing waits for open tables, and for queued writes
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
    /// @throws RuntimeException when a tier cannot be opened; then none stays open
    public static TickedCache open(Setup setup) {
        HostStore store = new HostStore(setup.config, setup.memory);
        Movement movement = new Movement(store.tierPort(), setup.clock, setup.targets, setup.admitting, setup.limits);
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
