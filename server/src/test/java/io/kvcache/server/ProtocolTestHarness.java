package io.kvcache.server;

import io.kvcache.server.access.OpenListener;
import io.kvcache.server.http.HttpConfig.TextEndpoint;
import io.kvcache.server.http.HttpProtocol;
import io.kvcache.server.http.TestHttpConfig;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.lm.LmProtocol;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.kvcache.server.resp.EmbeddedRespServer;
import io.kvcache.server.resp.RespProtocol;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// One port without a network, where every protocol is told by the first bytes, over one keyspace.
final class ProtocolTestHarness implements AutoCloseable {

    private final EmbeddedRespServer wire = new EmbeddedRespServer();
    private final RespProtocol resp = wire.protocol();
    private final LmProtocol lm = new LmProtocol(KeyspaceRouter.of(wire.test().keyspace()));
    private final HttpProtocol http = new HttpProtocol(TestHttpConfig.of(
            OpenListener.auth(wire.test().time()),
            wire.test().keyspace(),
            Map.of("/page", TextEndpoint.of("text/plain", () -> "page")),
            List.of(),
            Set.of()));

    EmbeddedConnection connect() {
        return connect(wire.connectionRegistry());
    }

    EmbeddedConnection connect(ConnectionRegistry connectionRegistry) {
        return new EmbeddedConnection(
                Map.of(ProtocolKind.RESP, resp, ProtocolKind.LM, lm, ProtocolKind.HTTP, http), connectionRegistry);
    }

    TestKeyspace test() {
        return wire.test();
    }

    /// Those of [#connect()]; one of them is open from the start to the end.
    ConnectionRegistry connectionRegistry() {
        return wire.connectionRegistry();
    }

    /// Requests of a protocol so far.
    long requests(ProtocolKind kind) {
        return switch (kind) {
            case RESP -> resp.commandCount();
            case LM -> lm.requestCount();
            case HTTP -> http.requestCount();
        };
    }

    @Override
    public void close() {
        wire.close();
    }
}
