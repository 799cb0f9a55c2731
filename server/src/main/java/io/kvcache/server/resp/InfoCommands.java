package io.kvcache.server.resp;

import io.kvcache.core.CacheStats;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.keyspace.KeyspaceStats;
import io.kvcache.server.miss.MissLog;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.resp.ClientCommand.ClientList;
import io.kvcache.server.resp.RespProtocol.RespStats;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/// INFO, CONFIG GET, TIME, ROLE, ACL WHOAMI, and CLUSTER where clients know one server only.
final class InfoCommands {

    private static final Set<String> EVERYTHING = Set.of("ALL", "DEFAULT", "EVERYTHING");

    private final RespContext context;
    private final InfoSections text;

    InfoCommands(RespContext context, RespStats stats) {
        this.context = context;
        text = new InfoSections(context, stats);
    }

    List<CommandSpec> commands() {
        CommandSpec.ArgumentPositions none = CommandSpec.ArgumentPositions.NONE;
        return List.of(
                CommandSpec.of("INFO", -1, "loading stale", none, this::info),
                CommandSpec.of("TIME", 1, "loading stale fast", none, this::time),
                CommandSpec.of("ROLE", 1, "noscript loading stale fast", none, InfoCommands::role),
                CommandSpec.of("ACL", -2, "noscript loading stale", none, this::acl),
                CommandSpec.of("CONFIG", -2, "admin noscript", none, this::config),
                CommandSpec.of("CLUSTER", -2, "stale", none, (session, request, out) -> {
                    throw new CommandException("ERR This instance has cluster support disabled");
                }));
    }

    private void info(RespSession session, RespRequest request, RespEncoder out) {
        Set<String> asked = new HashSet<>();
        for (int i = 1; i < request.count(); i++) {
            asked.add(request.argumentUpperCase(i));
        }
        boolean all = asked.isEmpty() || asked.stream().anyMatch(EVERYTHING::contains);
        out.writeVerbatim(text.sections().entrySet().stream()
                .filter(section -> all || asked.contains(section.getKey().toUpperCase(Locale.ROOT)))
                .map(section -> "# " + section.getKey() + "\r\n" + section.getValue())
                .collect(Collectors.joining("\r\n")));
    }

    /// Seconds and microseconds, of a clock of milliseconds.
    private void time(RespSession session, RespRequest request, RespEncoder out) {
        long millis = context.keyspaceRouter().ownKeyspace().nowMillis();
        out.beginArray(2);
        out.writeBulk(Long.toString(millis / 1000));
        out.writeBulk(Long.toString(millis % 1000 * 1000));
    }

    private static void role(RespSession session, RespRequest request, RespEncoder out) {
        out.beginArray(3);
        out.writeBulk("master");
        out.writeInteger(0);
        out.beginArray(0);
    }

    private void acl(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        if (!request.argumentUpperCase(1).equals("WHOAMI")) {
            throw new CommandException("ERR unknown subcommand '" + request.argumentText(1)
                    + "'. ACL takes WHOAMI; who may do what is in the server's file");
        }
        if (request.count() != 2) {
            throw new CommandException("ERR wrong number of arguments for 'acl|whoami' command");
        }
        out.writeBulk(context.tenant());
    }

    private void config(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        if (!request.argumentUpperCase(1).equals("GET") || request.count() < 3) {
            throw new CommandException("ERR CONFIG takes GET and patterns here; settings are in the server's file");
        }
        Map<String, String> found = new LinkedHashMap<>();
        for (int i = 2; i < request.count(); i++) {
            Glob pattern =
                    new Glob(request.argumentText(i).toLowerCase(Locale.ROOT).getBytes(StandardCharsets.UTF_8));
            settings().forEach((name, value) -> {
                if (pattern.matches(name.getBytes(StandardCharsets.UTF_8))) {
                    found.put(name, value);
                }
            });
        }
        out.beginMap(found.size());
        found.forEach((name, value) -> {
            out.writeBulk(name);
            out.writeBulk(value);
        });
    }

    private Map<String, String> settings() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("appendonly", "no");
        settings.put("databases", "1");
        settings.put(
                "maxclients",
                Integer.toString(context.connectionRegistry().limits().connections()));
        settings.put("kvcache-policy", context.serverInfo().policy().commandName());
        settings.put("maxmemory", Long.toString(text.maxMemory()));
        settings.put("maxmemory-policy", context.serverInfo().redisPolicy());
        settings.put(
                "proto-max-bulk-len",
                Long.toString(
                        context.keyspaceRouter().ownKeyspace().keyspaceLimits().valueBytes()));
        settings.put("save", "");
        settings.put(
                "timeout",
                Long.toString(
                        context.connectionRegistry().limits().idleTimeout().toSeconds()));
        return settings;
    }

    /// The sections of INFO, under the names that monitoring of Redis looks for, and one of our own.
    ///
    /// With several tenants each sees its own numbers, and none of the whole server's.
    private static final class InfoSections {

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
            sections.put(
                    "Cluster",
                    new Lines()
                            .add("cluster_enabled", context.slotOwnership() == null ? 0 : 1)
                            .text());
            sections.put("Keyspace", keyspace(keys));
            sections.put("KVCache", kvcacheSection(cache, keys));
            return sections;
        }

        private String server() {
            long seconds = TimeUnit.NANOSECONDS.toSeconds(
                    context.clock().nanos() - context.serverInfo().startedNanos());
            return new Lines()
                    .add("redis_version", ConnectionCommands.REDIS_VERSION)
                    .add("redis_mode", context.mode())
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
                    context.cache().stats(),
                    context.keyspaceRouter().ownKeyspace().stats());
        }

        private long maxMemory(CacheStats cache, KeyspaceStats keys) {
            long quota = keys.usage().quotaBytes();
            return context.soleTenant() || quota == 0 ? cache.host().capacityBytes() : quota;
        }

        private String stats(CacheStats cache, KeyspaceStats keys) {
            Lines lines = new Lines();
            if (context.soleTenant()) {
                lines.add(
                                "total_connections_received",
                                context.connectionRegistry().acceptedCount())
                        .add("total_commands_processed", stats.commands.sum())
                        .add("total_error_replies", stats.errors.sum())
                        .add(
                                "rejected_connections",
                                context.connectionRegistry().closedCount(CloseReason.TOO_MANY));
            }
            return lines.add("expired_keys", keys.reads().of(MissLog.Reason.EXPIRED))
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
                    .add("values_declined", keys.writes().declined())
                    .add("promises_given", keys.promises().given())
                    .add("promises_without_pin", keys.promises().bare())
                    .add("promises_broken", keys.promises().broken())
                    .add("promises_kept", keys.promises().kept())
                    .add("promises_held_bytes", keys.promises().heldBytes());
            if (context.soleTenant()) {
                lines.add("values_dropped_after_ok", stats.droppedAfterOk.sum())
                        .add("protocol_errors", stats.protocolErrors.sum())
                        .add("records", cache.records().live())
                        .add("records_capacity", cache.records().capacity())
                        .add("puts_declined", cache.puts().declined())
                        .add(
                                "policy_follows_lru",
                                context.serverInfo().followsLru().getAsBoolean() ? 1 : 0);
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

    /// SAVE: answered when all that was stored before it is on disk and survives a crash. LASTSAVE:
    /// when it was, the last time.
    ///
    /// It writes what all tenants have stored, and may take minutes of the disks' time. So where
    /// there are several, it is for the default tenant alone.
    static final class SaveCommand {

        /// Longer than a disk takes for the memory of most machines, shorter than people wait.
        private static final Duration TIMEOUT = Duration.ofMinutes(5);

        private static final long ALL_SAVED = -1;

        private final RespContext context;
        private final RespStats stats;

        SaveCommand(RespContext context, RespStats stats) {
            this.context = context;
            this.stats = stats;
        }

        List<CommandSpec> commands() {
            CommandSpec.ArgumentPositions none = CommandSpec.ArgumentPositions.NONE;
            return List.of(
                    CommandSpec.of("SAVE", 1, "admin", none, this::save),
                    CommandSpec.of(
                            "LASTSAVE",
                            1,
                            "fast",
                            none,
                            (session, request, out) -> out.writeInteger(stats.savedSeconds.get())));
        }

        private void save(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
            if (!context.soleTenant() && !context.tenant().equals(TenantConfig.DEFAULT)) {
                throw new CommandException("NOPERM tenant " + context.tenant()
                        + " may not run 'save': it writes the values of all tenants, and is for tenant "
                        + TenantConfig.DEFAULT);
            }
            if (!context.serverInfo().hasDisk()) {
                throw new CommandException("ERR no disk is configured, so nothing can be saved; set disks");
            }
            session.handler()
                    .<Long>await(
                            then -> Thread.ofVirtual().start(() -> then.accept(flushAll())),
                            unsavedBytes -> {
                                if (unsavedBytes == ALL_SAVED) {
                                    stats.savedSeconds.set(context.keyspaceRouter()
                                                    .ownKeyspace()
                                                    .nowMillis()
                                            / 1000);
                                    out.writeOk();
                                } else {
                                    out.writeError((unsavedBytes == 0
                                                    ? "ERR not saved: "
                                                    : "ERR not all is on disk, " + unsavedBytes
                                                            + " bytes are in memory alone: ")
                                            + unsavedCause());
                                }
                            },
                            _ -> {});
        }

        /// Returns what is wrong with the disks, or may be.
        private String unsavedCause() {
            List<String> problems = context.serverInfo().diskProblems().get();
            return problems.isEmpty()
                    ? "a disk fails, is full or slow, or a value is larger than half a percent of it"
                    : String.join("; ", problems);
        }

        /// Brings all to disk; bytes that are not there after that.
        private long flushAll() {
            return context.cache().flush(TIMEOUT)
                    ? ALL_SAVED
                    : context.unsavedBytes().getAsLong();
        }
    }
}
