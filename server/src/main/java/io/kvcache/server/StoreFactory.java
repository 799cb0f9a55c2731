package io.kvcache.server;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.tier.TierSource;
import io.kvcache.server.config.MemoryConfig.PrefaultMode;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.server.config.TrustDomainConfig;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.tiers.memory.SharedMemorySource;
import io.kvcache.tiers.memory.SharedMemorySource.AbandonedFolder;
import io.kvcache.tiers.os.ByteSizeFormat;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.Set;

/// The stores of a server, as its settings want them.
final class StoreFactory {

    private static final Logger LOG = System.getLogger(StoreFactory.class.getName());

    /// Views that the network still holds when its loops have ended belong to a bug; they are not waited
    /// for long.
    private static final Duration CLOSE_WAIT = Duration.ofSeconds(1);

    private StoreFactory() {}

    /// Takes the memory; that which clients on this host map, where it was not asked for by name, only if
    /// it can be had.
    ///
    /// @param gpus tiers in front of the disks
    /// @throws IllegalStateException when the memory cannot be had
    static TieredKvCache open(ServerConfig config, Clock clock, Collection<? extends TierSource> gpus) {
        removeAbandonedMemory();
        Path shared = config.transport().sharedMemoryDirectory(config.access().tenants());
        if (shared == null) {
            return builder(config, gpus).clock(clock).build();
        }
        try {
            return builder(config, gpus).clock(clock).shareMemory(shared).build();
        } catch (IllegalStateException refused) {
            if (config.transport().isSharedMemoryExplicit()) {
                throw refused;
            }
            LOG.log(
                    Level.INFO,
                    "Clients on this host cannot read the store in shared memory: {0}",
                    refused.getMessage());
            return builder(config, gpus).clock(clock).build();
        }
    }

    /// Says which stores clients on this host may map, once the server has all that it needs to start.
    ///
    /// @param cache the shared store
    static void logSharing(ServerConfig config, TieredKvCache cache) {
        if (cache.sharedMemory() != null) {
            LOG.log(
                    Level.INFO,
                    "Clients on this host may read the store in shared memory: {0}",
                    config.transport().sharedMemoryDirectory(config.access().tenants()));
        }
        for (TrustDomainConfig domain : config.access().domains()) {
            if (domain.sharedMemoryDirectory() != null) {
                LOG.log(
                        Level.INFO,
                        "Tenants {0} on this host may read their store in shared memory: {1}",
                        String.join(", ", domain.tenants()),
                        domain.sharedMemoryDirectory());
            }
        }
    }

    /// A server that was killed leaves all of its shared memory behind, which this one may need.
    private static void removeAbandonedMemory() {
        for (AbandonedFolder left : SharedMemorySource.removeAbandoned(TransportConfig.SHM_DIRECTORY)) {
            LOG.log(
                    Level.INFO,
                    "Removed {0}, which a server that was killed left behind: {1}",
                    left.folder(),
                    ByteSizeFormat.format(left.bytes()));
        }
    }

    /// The store of a trust domain: in memory alone, and mapped by its tenants if the settings say so.
    ///
    /// @throws IllegalStateException when the memory cannot be had
    static TieredKvCache open(ServerConfig config, TrustDomainConfig domain, Clock clock) {
        TieredKvCacheBuilder builder =
                inMemoryBuilder(config, domain.hostBytes()).clock(clock);
        Path folder = domain.sharedMemoryDirectory();
        if (folder != null) {
            builder.shareMemory(folder, Set.copyOf(domain.tenants()));
        }
        return builder.build();
    }

    /// Memory that all stores together will reserve, in bytes.
    static long reservedBytes(ServerConfig config) {
        return builder(config, GpuDevices.of(config).tiers()).reservedBytes()
                + config.access().domains().stream()
                        .mapToLong(each ->
                                inMemoryBuilder(config, each.hostBytes()).reservedBytes())
                        .sum();
    }

    private static TieredKvCacheBuilder inMemoryBuilder(ServerConfig config, long hostBytes) {
        return TieredKvCache.builder()
                .hostBytes(hostBytes)
                .policy(config.memory().policy())
                .prefaultInBackground(config.memory().prefaultMode() == PrefaultMode.BACKGROUND)
                .prefaultAtStart(config.memory().prefaultMode() == PrefaultMode.BEFORE_READY)
                .closeWait(CLOSE_WAIT)
                .flushOnClose(Duration.ZERO) // a server that goes down flushes by itself, within shutdown.drain
                .stagingLimits(config.memory().staging());
    }

    /// All but the clock and what clients map.
    private static TieredKvCacheBuilder builder(ServerConfig config, Collection<? extends TierSource> gpus) {
        TieredKvCacheBuilder builder = inMemoryBuilder(config, config.memory().hostBytes())
                .admission(config.disks().admission())
                .prefetch(config.disks().prefetch());
        PrefillCost prefill = config.disks().recompute().cost();
        if (prefill != null) {
            builder.prefill(prefill);
        }
        config.disks().disks().forEach(disk -> builder.disk(disk.toDiskOptions()));
        gpus.forEach(builder::tier);
        return builder;
    }
}
