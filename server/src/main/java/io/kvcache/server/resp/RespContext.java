package io.kvcache.server.resp;

import io.kvcache.core.KvCache;
import io.kvcache.core.time.Clock;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.net.ConnectionRegistry;
import java.util.function.LongSupplier;

/// What the commands work on.
///
/// @param unsavedBytes of values that are in memory alone
/// @param tenant whose clients say the commands
/// @param soleTenant whether there is no other
/// @param keyspaceRouter the values that the commands are for
/// @param serverInfo what the server says of itself
public record RespContext(
        KvCache cache,
        LongSupplier unsavedBytes,
        String tenant,
        boolean soleTenant,
        KeyspaceRouter keyspaceRouter,
        ConnectionRegistry connectionRegistry,
        Clock clock,
        ServerInfo serverInfo) {}
