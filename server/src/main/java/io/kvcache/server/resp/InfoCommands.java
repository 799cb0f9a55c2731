package io.kvcache.server.resp;

import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/// INFO, CONFIG GET, TIME, ROLE, ACL WHOAMI, and CLUSTER, which there is none.
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

    private void info(RespClientState session, RespRequest request, RespEncoder out) {
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
    private void time(RespClientState session, RespRequest request, RespEncoder out) {
        long millis = context.keyspaceRouter().ownKeyspace().nowMillis();
        out.beginArray(2);
        out.writeBulk(Long.toString(millis / 1000));
        out.writeBulk(Long.toString(millis % 1000 * 1000));
    }

    private static void role(RespClientState session, RespRequest request, RespEncoder out) {
        out.beginArray(3);
        out.writeBulk("master");
        out.writeInteger(0);
        out.beginArray(0);
    }

    private void acl(RespClientState session, RespRequest request, RespEncoder out) throws CommandException {
        if (!request.argumentUpperCase(1).equals("WHOAMI")) {
            throw new CommandException("ERR unknown subcommand '" + request.argumentText(1)
                    + "'. ACL takes WHOAMI; who may do what is in the server's file");
        }
        if (request.count() != 2) {
            throw new CommandException("ERR wrong number of arguments for 'acl|whoami' command");
        }
        out.writeBulk(context.tenant());
    }

    private void config(RespClientState session, RespRequest request, RespEncoder out) throws CommandException {
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
}
