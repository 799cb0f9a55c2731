package io.kvcache.server.resp;

import io.kvcache.core.Clock;
import io.kvcache.core.KvCache;
import io.kvcache.server.keyspace.Reach;
import io.kvcache.server.net.Connections;

/// What the commands work on.
///
/// @param tenant whose clients say the commands
/// @param soleTenant whether there is no other
/// @param reach the values that the commands are for
/// @param startedNanos when the server started, by `clock`
/// @param version of the server
public record RespContext(
        KvCache cache,
        String tenant,
        boolean soleTenant,
        Reach reach,
        Connections connections,
        Clock clock,
        long startedNanos,
        String version) {}
