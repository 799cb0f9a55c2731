package io.kvcache.server.resp;

import io.kvcache.server.access.ListenerAuth;
import java.util.HashMap;
import java.util.Map;

/// What clients may ask, by who they are.
final class Entrance {

    private final ListenerAuth door;
    private final CommandTable before;
    private final Map<String, CommandTable> tables = new HashMap<>();

    Entrance(ListenerAuth door, Map<String, RespContext> tenants, RespStats stats) {
        this.door = door;
        Login login = new Login(door, this, stats);
        String version = tenants.values().stream()
                .map(each -> each.facts().version())
                .findAny()
                .orElse("");
        before = CommandTable.before(new ConnectionCommands(version, login).beforeLogin(), stats);
        tenants.forEach((name, context) -> tables.put(name, CommandTable.of(context, login, stats)));
    }

    /// What a client may ask that has said nothing.
    CommandTable first() {
        String everybody = door.anonymousTenant();
        return everybody == null ? before : of(everybody);
    }

    /// What a tenant may ask.
    CommandTable of(String tenant) {
        return tables.getOrDefault(tenant, before);
    }

    /// Whether these are the commands of nobody.
    @SuppressWarnings("ReferenceEquality") // there is one of each
    boolean isBefore(CommandTable table) {
        return table == before;
    }
}
