package io.kvcache.server;

import io.kvcache.core.Clock;
import io.kvcache.server.config.Prefault;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.tiers.memory.NamedMemorySource;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.time.Duration;

/// The store of a server, as its settings want it.
final class ServedStore {

    private static final Logger LOG = System.getLogger(ServedStore.class.getName());

    /// Views that the network still holds when its loops have ended belong to a bug; they are not waited
    /// for long.
    private static final Duration CLOSE_WAIT = Duration.ofSeconds(1);

    private ServedStore() {}

    /// Takes the memory; that which clients on this host map, where it was not asked for by name, only if
    /// it can be had.
    ///
    /// @throws IllegalStateException when the memory cannot be had
    static TieredKvCache open(ServerConfig config, Clock clock) {
        Path shared = config.transport().sharedFolder(config.access().tenants(), config.lease());
        if (shared == null) {
            return builder(config).clock(clock).build();
        }
        try {
            TieredKvCache cache = builder(config).clock(clock).shared(shared).build();
            LOG.log(Level.INFO, "Clients on this host may read in place: {0}", shared);
            return cache;
        } catch (IllegalStateException refused) {
            if (config.transport().sharesByName()) {
                throw refused;
            }
            LOG.log(Level.INFO, "Clients on this host do not read in place: {0}", refused.getMessage());
            return builder(config).clock(clock).build();
        }
    }

    /// All but the clock and what clients map.
    static TieredKvCacheBuilder builder(ServerConfig config) {
        TieredKvCacheBuilder builder = TieredKvCache.builder()
                .hostBytes(config.memory().hostBytes())
                .policy(config.memory().policy())
                .touched(config.memory().prefault() == Prefault.BACKGROUND)
                .touchedFirst(config.memory().prefault() == Prefault.BEFORE_READY)
                .closeWait(CLOSE_WAIT)
                .admission(config.disks().admission());
        config.disks().disks().forEach(disk -> builder.disk(disk.options()));
        if (config.lease().on()) {
            builder.memory(new NamedMemorySource(
                    config.lease().folder(), config.lease().sharedMemory()));
        }
        return builder;
    }
}
