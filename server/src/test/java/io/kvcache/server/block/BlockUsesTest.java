package io.kvcache.server.block;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.access.PasswordAuthenticator;
import io.kvcache.server.http.HttpConfig;
import io.kvcache.server.http.HttpProtocol;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.quota.ByteBudget;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/// How often a policy hears of the blocks that a client reads.
final class BlockUsesTest {

    private static final String SHAPE =
            "{\"shape\":{\"layers\":1,\"kvHeads\":1,\"headDim\":8,\"blockTokens\":4,\"dtype\":\"bf16\"}}";
    private static final String LINE = "{\"namespace\":\"m\",\"keys\":[\"00\",\"01\",\"02\",\"03\"]}\n";

    @Test
    void givenAChain_whenReadInOneRequest_thenEachBlockIsUsedOnce() {
        AtomicInteger uses = new AtomicInteger();
        try (TestKeyspace test = new TestKeyspace(64L << 20, new CountingPolicies(uses))) {
            TenantNamespaceRegistry namespaces = new TenantNamespaceRegistry(test.cache());
            HttpProtocol protocol = new HttpProtocol(new HttpConfig(
                    ListenerAuth.withoutAuth(PasswordAuthenticator.withoutPasswords(test.time())),
                    Map.of("default", test.keyspace()),
                    Map.of(),
                    List.of(
                            new NamespaceEndpoint(namespaces),
                            new BlockEndpoint(
                                    test.cache(),
                                    namespaces,
                                    Duration.ZERO,
                                    BlockQuotaTrackers.withoutQuotas(test.cache()),
                                    new BlockEndpoint.TransferBudgets(
                                            _ -> ByteBudget.unlimited(), _ -> ByteBudget.unlimited()))),
                    Set.of("*")));
            EmbeddedConnection client =
                    new EmbeddedConnection(protocol, new ConnectionRegistry(NetLimits.defaults(), test.time()));
            client.ask(request("PUT", "/v1/namespaces/m", SHAPE));
            assertThat(client.ask(request("POST", "/v1/blocks/put", LINE + "x".repeat(4 * 128))))
                    .contains("\"stored\":4");
            test.cache().validate();
            uses.set(0);

            assertThat(client.ask(request("POST", "/v1/blocks/get", LINE))).contains("KVCache-Blocks: 4");
            client.ask(request("PUT", "/v1/blocks/m/ff", "x".repeat(128))); // takes the lock, and so tells of uses
            assertThat(uses.getAndSet(0)).isEqualTo(4);

            for (int number = 0; number < 4; number++) {
                client.ask(request("GET", "/v1/blocks/m/0" + number, ""));
            }
            client.ask(request("PUT", "/v1/blocks/m/fe", "x".repeat(128)));
            assertThat(uses.get()).isEqualTo(1 + 2 + 3 + 4);
            client.close();
        }
    }

    private static String request(String method, String path, String body) {
        return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + body.length() + "\r\n\r\n"
                + body;
    }

    /// LRU that hears of the whole path of each request, and counts what it hears.
    private record CountingPolicies(AtomicInteger uses) implements EvictionPolicyFactory {

        @Override
        public String commandName() {
            return "counting";
        }

        @Override
        public EvictionPolicy create(RecordView records, PolicyState state) {
            EvictionPolicy lru = PolicyKind.LRU.create(records, state);
            return (EvictionPolicy) Proxy.newProxyInstance(
                    EvictionPolicy.class.getClassLoader(),
                    new Class<?>[] {EvictionPolicy.class},
                    (_, called, arguments) -> {
                        switch (called.getName()) {
                            case "touch" -> uses.incrementAndGet();
                            case "touchesAncestors" -> {
                                return true;
                            }
                            default -> {}
                        }
                        try {
                            return called.invoke(lru, arguments);
                        } catch (InvocationTargetException thrown) {
                            throw thrown.getCause();
                        }
                    });
        }
    }
}
