package io.kvcache.server.resp;

import io.kvcache.core.CacheStats;
import io.kvcache.server.keyspace.KeyspaceStats;
import io.kvcache.server.net.CloseReason;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.StringJoiner;
import java.util.concurrent.TimeUnit;

/// The sections of INFO, under the names that monitoring of Redis looks for, and one of our own.
///
/// Where there are several tenants, each is told of what is its own, and nothing of what all have together.
final class InfoSections {

    private final RespContext context;
    private final RespStats stats;

    InfoSections(RespContext context, RespStats stats) {
        this.context = context;
        this.stats = stats;
    }

    /// Text by name of the section, in order.
    Map<String, String> sections() {
        CacheStats cache = context.cache().stats();
        KeyspaceStats keys = context.keyspaceRouter().ownKeyspace().stats();
        Map<String, String> sections = new LinkedHashMap<>();
        sections.put("Server", server());
        sections.put("Clients", clients());
        sections.put("Memory", memory(cache, keys));
        sections.put("Persistence", new Lines().add("loading", 0).text());
        sections.put("Stats", stats(cache, keys));
        sections.put(
                "Replication",
                new Lines().add("role", "master").add("connected_slaves", 0).text());
        sections.put("Cluster", new Lines().add("cluster_enabled", 0).text());
        sections.put("Keyspace", keyspace(keys));
        sections.put("KVCache", kvcacheSection(cache, keys));
        return sections;
    }

    private String server() {
        long seconds = TimeUnit.NANOSECONDS.toSeconds(
                context.clock().nanos() - context.serverInfo().startedNanos());
        return new Lines()
                .add("redis_version", ConnectionCommands.REDIS_VERSION)
                .add("redis_mode", "standalone")
                .add("kvcache_version", context.serverInfo().version())
                .add("os", System.getProperty("os.name") + " " + System.getProperty("os.arch"))
                .add("arch_bits", 64)
                .add("process_id", ProcessHandle.current().pid())
                .add("uptime_in_seconds", seconds)
                .add("uptime_in_days", TimeUnit.SECONDS.toDays(seconds))
                .text();
    }

    private String clients() {
        return new Lines()
                .add("connected_clients", new ClientList(context).visible().size())
                .add("maxclients", context.connectionRegistry().limits().connections())
                .add("blocked_clients", 0)
                .text();
    }

    private String memory(CacheStats cache, KeyspaceStats keys) {
        return new Lines()
                .add(
                        "used_memory",
                        context.soleTenant()
                                ? cache.host().heldBytes()
                                : keys.usage().usedBytes())
                .add("maxmemory", maxMemory(cache, keys))
                .add("maxmemory_policy", context.serverInfo().redisPolicy())
                .add("kvcache_policy", context.serverInfo().policy().commandName())
                .add("mem_fragmentation_ratio", "1.00")
                .text();
    }

    /// Most that the tenant's values may take of host memory.
    long maxMemory() {
        return maxMemory(
                context.cache().stats(), context.keyspaceRouter().ownKeyspace().stats());
    }

    private long maxMemory(CacheStats cache, KeyspaceStats keys) {
        long quota = keys.usage().quotaBytes();
        return context.soleTenant() || quota == 0 ? cache.host().capacityBytes() : quota;
    }

    private String stats(CacheStats cache, KeyspaceStats keys) {
        Lines lines = new Lines();
        if (context.soleTenant()) {
            lines.add("total_connections_received", context.connectionRegistry().acceptedCount())
                    .add("total_commands_processed", stats.commands.sum())
                    .add("total_error_replies", stats.errors.sum())
                    .add("rejected_connections", context.connectionRegistry().closedCount(CloseReason.TOO_MANY));
        }
        return lines.add("expired_keys", keys.reads().expired())
                .add(
                        "evicted_keys",
                        context.soleTenant()
                                ? cache.removals().evicted()
                                : keys.evicted() + keys.usage().evicted())
                .add("keyspace_hits", keys.reads().hits())
                .add("keyspace_misses", keys.reads().misses())
                .text();
    }

    private static String keyspace(KeyspaceStats keys) {
        return keys.keys() == 0
                ? ""
                : new Lines()
                        .add("db0", "keys=" + keys.keys() + ",expires=" + keys.expiringKeys() + ",avg_ttl=0")
                        .text();
    }

    private String kvcacheSection(CacheStats cache, KeyspaceStats keys) {
        Lines lines = new Lines()
                .add("values_stored", keys.writes().stored())
                .add("values_refused", keys.writes().refused())
                .add("promises_given", keys.promises().given())
                .add("promises_without_pin", keys.promises().bare())
                .add("promises_broken", keys.promises().broken())
                .add("promises_kept", keys.promises().kept())
                .add("promises_held_bytes", keys.promises().heldBytes());
        if (context.soleTenant()) {
            lines.add("values_dropped_after_ok", stats.droppedAfterOk.sum())
                    .add("protocol_errors", stats.protocolErrors.sum())
                    .add("records", cache.records().live())
                    .add("records_capacity", cache.records().capacity());
        }
        return lines.text();
    }

    private static final class Lines {

        private final StringJoiner lines = new StringJoiner("\r\n", "", "\r\n");

        Lines add(String name, Object value) {
            lines.add(name + ":" + value);
            return this;
        }

        String text() {
            return lines.toString();
        }
    }
}
