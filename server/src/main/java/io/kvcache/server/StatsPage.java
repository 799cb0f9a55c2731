package io.kvcache.server;

import io.kvcache.core.CacheStats;
import io.kvcache.core.store.DiskSideStats;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceStats;
import io.kvcache.server.net.CloseReason;
import io.kvcache.server.net.Connections;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.movement.MoverStats;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import tools.jackson.databind.json.JsonMapper;

/// The page `/v1/stats`: one JSON object.
final class StatsPage implements Supplier<String> {

    private final TieredKvCache cache;
    private final Keyspace keyspace;
    private final Connections connections;
    private final String version;

    StatsPage(TieredKvCache cache, Keyspace keyspace, Connections connections, String version) {
        this.cache = cache;
        this.keyspace = keyspace;
        this.connections = connections;
        this.version = version;
    }

    private record Clients(int open, long accepted, Map<String, Long> closed) {}

    private record Stats(
            String version,
            CacheStats.Memory host,
            CacheStats.Records records,
            CacheStats.Puts puts,
            CacheStats.Removals removals,
            long openViews,
            List<MoverStats> disks,
            DiskSideStats offload,
            boolean recovering,
            KeyspaceStats keyspace,
            Clients connections) {}

    @Override
    public String get() {
        CacheStats stats = cache.stats();
        return JsonMapper.builder()
                        .build()
                        .writeValueAsString(new Stats(
                                version,
                                stats.host(),
                                stats.records(),
                                stats.puts(),
                                stats.removals(),
                                stats.openTables(),
                                cache.diskStats(),
                                cache.offloadStats(),
                                cache.recovering(),
                                keyspace.stats(),
                                clients()))
                + "\n";
    }

    private Clients clients() {
        Map<String, Long> closed = new TreeMap<>();
        for (CloseReason reason : CloseReason.values()) {
            closed.put(reason.name().toLowerCase(Locale.ROOT), connections.closedCount(reason));
        }
        return new Clients(connections.openCount(), connections.acceptedCount(), closed);
    }
}
