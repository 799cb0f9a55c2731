package io.kvcache.server.resp;

import io.kvcache.core.Clock;
import io.kvcache.core.KvCache;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.net.Connections;

/// What the commands work on.
///
/// @param startedNanos when the server started, by `clock`
/// @param version of the server
public record RespContext(
        KvCache cache, Keyspace keyspace, Connections connections, Clock clock, long startedNanos, String version) {}
