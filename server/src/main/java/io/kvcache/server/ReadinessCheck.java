package io.kvcache.server;

import io.kvcache.core.tier.TierState;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.movement.TierTransferStats;
import java.util.Locale;
import java.util.function.Supplier;

/// The page `/health/ready`: a word, and a line for each thing that is not as it should be.
///
/// A server whose disk is out serves what it has in memory, so it stays ready.
final class ReadinessCheck implements Supplier<String> {

    private final TieredKvCache cache;
    private final ConnectionRegistry connectionRegistry;

    ReadinessCheck(TieredKvCache cache, ConnectionRegistry connectionRegistry) {
        this.cache = cache;
        this.connectionRegistry = connectionRegistry;
    }

    boolean isReady() {
        return !connectionRegistry.isShutdownAnnounced();
    }

    @Override
    public String get() {
        StringBuilder text =
                new StringBuilder(isReady() ? "ready\n" : connectionRegistry.isDraining() ? "draining\n" : "leaving\n");
        if (cache.isRecovering()) {
            text.append("recovering: not all that the disks hold is known yet, ")
                    .append(cache.offloadStats().restored())
                    .append(" blocks and values so far; what is not known is a miss\n");
        }
        for (TierTransferStats disk : cache.diskStats()) {
            if (disk.state() != TierState.SERVING) {
                text.append(disk.name())
                        .append(" is ")
                        .append(disk.state().name().toLowerCase(Locale.ROOT).replace('_', ' '))
                        .append(disk.cause().isEmpty() ? "" : ": " + disk.cause())
                        .append('\n');
            }
        }
        return text.toString();
    }
}
