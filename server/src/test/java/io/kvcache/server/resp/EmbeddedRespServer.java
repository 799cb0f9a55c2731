package io.kvcache.server.resp;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.server.access.OpenListener;
import io.kvcache.server.keyspace.KeyOwnershipRules;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.SettableViews;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.resp.RespContext.ServerInfo;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/// The Redis front end over a real store, without a network.
public final class EmbeddedRespServer implements AutoCloseable {

    private final TestKeyspace test;
    private final RespProtocol protocol;
    private final ConnectionRegistry connectionRegistry;
    private final EmbeddedConnection embeddedConnection;

    public EmbeddedRespServer() {
        this(ByteBudget.unlimited());
    }

    /// @param arguments heap for those of requests that are not answered yet
    EmbeddedRespServer(ByteBudget arguments) {
        this(arguments, () -> KeyOwnershipRules.NONE);
    }

    /// @param rules asked for each key
    EmbeddedRespServer(Supplier<KeyOwnershipRules> rules) {
        this(ByteBudget.unlimited(), rules);
    }

    /// A server `kv-0` of a cluster, at a listener for clients of Redis Cluster.
    EmbeddedRespServer(SettableViews views) {
        this(ByteBudget.unlimited(), () -> KeyOwnershipRules.NONE, TestKeyspace.inCluster("kv-0", views));
    }

    private EmbeddedRespServer(ByteBudget arguments, Supplier<KeyOwnershipRules> rules) {
        this(arguments, rules, TestKeyspace.small());
    }

    private EmbeddedRespServer(ByteBudget arguments, Supplier<KeyOwnershipRules> rules, TestKeyspace test) {
        this.test = test;
        connectionRegistry = EmbeddedConnection.registry(NetLimits.defaults(), test.time());
        protocol = new RespProtocol(
                OpenListener.auth(test.time()),
                Map.of(
                        "default",
                        new RespContext(
                                test.cache(),
                                () -> 0,
                                "default",
                                true,
                                new KeyspaceRouter(test.keyspace(), Map.of(), rules),
                                connectionRegistry,
                                test.time(),
                                new ServerInfo("test", PolicyKind.IMPORTANCE, 0, false, List::of, () -> true),
                                test.slotOwnership(),
                                false,
                                null)),
                arguments);
        embeddedConnection = connect();
    }

    EmbeddedConnection connect() {
        return new EmbeddedConnection(protocol, connectionRegistry);
    }

    public TestKeyspace test() {
        return test;
    }

    public RespProtocol protocol() {
        return protocol;
    }

    public ConnectionRegistry connectionRegistry() {
        return connectionRegistry;
    }

    EmbeddedConnection embeddedConnection() {
        return embeddedConnection;
    }

    /// Sends a command as clients do, and answers the bytes that come back, line ends as they are.
    String ask(String... words) {
        return embeddedConnection.send(frame(words)).text();
    }

    public static byte[] frame(String... words) {
        byte[][] bytes = new byte[words.length][];
        for (int i = 0; i < words.length; i++) {
            bytes[i] = words[i].getBytes(StandardCharsets.ISO_8859_1);
        }
        return frame(bytes);
    }

    public static byte[] frame(byte[]... words) {
        ByteArrayOutputStream frame = new ByteArrayOutputStream();
        frame.writeBytes(("*" + words.length + "\r\n").getBytes(StandardCharsets.US_ASCII));
        for (byte[] word : words) {
            frame.writeBytes(("$" + word.length + "\r\n").getBytes(StandardCharsets.US_ASCII));
            frame.writeBytes(word);
            frame.writeBytes(new byte[] {'\r', '\n'});
        }
        return frame.toByteArray();
    }

    @Override
    public void close() {
        embeddedConnection.close();
        test.close();
    }
}
