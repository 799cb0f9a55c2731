package io.kvcache.server.resp;

import io.kvcache.server.resp.RespProtocol.RespStats;

import io.kvcache.server.access.ListenerAuth;
import java.util.HashMap;
import java.util.Map;

/// What clients may ask, by who they are.
final class CommandTables {

    private final ListenerAuth listenerAuth;
    private final CommandTable preAuth;
    private final Map<String, CommandTable> tables = new HashMap<>();

    CommandTables(ListenerAuth listenerAuth, Map<String, RespContext> tenants, RespStats stats) {
        this.listenerAuth = listenerAuth;
        RespAuthenticator respAuthenticator = new RespAuthenticator(listenerAuth, this, stats);
        String version = tenants.values().stream()
                .map(each -> each.serverInfo().version())
                .findAny()
                .orElse("");
        preAuth = CommandTable.preAuth(new ConnectionCommands(version, respAuthenticator).preAuthCommands(), stats);
        tenants.forEach((name, context) -> tables.put(name, CommandTable.of(context, respAuthenticator, stats)));
    }

    /// What a client may ask that has said nothing.
    CommandTable initialTable() {
        String everybody = listenerAuth.anonymousTenant();
        return everybody == null ? preAuth : forTenant(everybody);
    }

    /// What a tenant may ask.
    CommandTable forTenant(String tenant) {
        return tables.getOrDefault(tenant, preAuth);
    }

    /// Whether these are the commands of nobody.
    @SuppressWarnings("ReferenceEquality") // there is one of each
    boolean isPreAuth(CommandTable table) {
        return table == preAuth;
    }
}
