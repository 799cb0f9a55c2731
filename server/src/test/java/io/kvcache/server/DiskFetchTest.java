package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.server.access.ListenerAuth;
import io.kvcache.server.access.OpenListener;
import io.kvcache.server.http.HttpProtocol;
import io.kvcache.server.http.TestHttpConfig;
import io.kvcache.server.keyspace.DelayedDiskStore;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceOptions;
import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.lm.LmProtocol;
import io.kvcache.server.miss.MissLog.Reason;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.Protocol;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.resp.RespContext;
import io.kvcache.server.resp.RespContext.ServerInfo;
import io.kvcache.server.resp.RespProtocol;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// A connection while a value is read from disk, over each protocol.
final class DiskFetchTest {

    private final DelayedDiskStore store = new DelayedDiskStore();
    private final ConnectionRegistry connectionRegistry =
            EmbeddedConnection.registry(NetLimits.defaults(), store.time());

    @AfterEach
    void close() {
        store.close();
    }

    enum Spoken {
        RESP("GET k\r\n", "$5\r\nvalue\r\n", "$-1\r\n"),
        LM(
                "\2" + "\0".repeat(35) + "k" + " ".repeat(149),
                "\u00c8\0\0\0\5\0\0\0\1\0\0\0\2" + "\0".repeat(23) + "value",
                "\u0090\1\0\0\0\0\0\0"),
        HTTP(
                "GET /v1/objects/k HTTP/1.1\r\nHost: localhost\r\n\r\n",
                "HTTP/1.1 200 OK",
                "HTTP/1.1 503 Service Unavailable");

        private final String request;
        private final String reply;
        private final String miss;

        Spoken(String request, String reply, String miss) {
            this.request = request;
            this.reply = reply;
            this.miss = miss;
        }
    }

    private EmbeddedConnection connect(Spoken spoken) {
        return connect(spoken, store.keyspace());
    }

    private EmbeddedConnection connect(Spoken spoken, Keyspace keyspace) {
        ListenerAuth listenerAuth = OpenListener.auth(store.time());
        Protocol protocol = switch (spoken) {
            case RESP ->
                new RespProtocol(
                        listenerAuth,
                        Map.of(
                                "default",
                                new RespContext(
                                        store.cache(),
                                        () -> 0,
                                        "default",
                                        true,
                                        KeyspaceRouter.of(keyspace),
                                        connectionRegistry,
                                        store.time(),
                                        new ServerInfo("test", PolicyKind.LRU, 0, true, List::of, () -> false),
                                        null,
                                        false,
                                        null)),
                        ByteBudget.unlimited());
            case LM -> new LmProtocol(KeyspaceRouter.of(keyspace));
            case HTTP -> new HttpProtocol(TestHttpConfig.of(listenerAuth, keyspace, Map.of(), List.of(), Set.of("*")));
        };
        return new EmbeddedConnection(protocol, connectionRegistry);
    }

    private String arrived(EmbeddedConnection embeddedConnection) {
        store.completeFetch();
        embeddedConnection.channel().runPendingTasks();
        return embeddedConnection.text();
    }

    @ParameterizedTest
    @EnumSource
    void givenAValueOnItsWay_whenMoreIsPipelined_thenAllIsAnsweredInOrder(Spoken spoken) {
        store.put("k", "value");
        try (EmbeddedConnection embeddedConnection = connect(spoken)) {
            assertThat(embeddedConnection.ask(spoken.request + spoken.request)).isEmpty();
            assertThat(embeddedConnection.channel().config().isAutoRead()).isFalse();
            assertThat(arrived(embeddedConnection)).startsWith(spoken.reply).contains("value");
            assertThat(arrived(embeddedConnection)).startsWith(spoken.reply).contains("value");
            assertThat(embeddedConnection.channel().config().isAutoRead()).isTrue();
            assertThat(store.held()).isZero();
        }
    }

    @ParameterizedTest
    @EnumSource
    void givenAValueThatDoesNotCome_whenItsTimeIsUp_thenItIsAMissThatSaysSoWhereItCan(Spoken spoken) {
        store.put("k", "value");
        try (EmbeddedConnection embeddedConnection = connect(spoken)) {
            embeddedConnection.send(spoken.request + spoken.request);
            store.timeOutFetch();
            embeddedConnection.channel().runPendingTasks();
            String miss = embeddedConnection.text();
            assertThat(miss).startsWith(spoken.miss);
            if (spoken == Spoken.HTTP) {
                assertThat(miss).containsIgnoringCase("retry-after: 1\r\n").contains("urn:kvcache:problem:late");
            }
            assertThat(arrived(embeddedConnection)).startsWith(spoken.reply);
        }
    }

    @ParameterizedTest
    @EnumSource
    void givenAsMuchOnItsWayAsMayBe_whenAValueInMemoryIsAskedFor_thenItIsBusyOnceAndNotWaitedFor(Spoken spoken) {
        ByteBudget leaving = new ByteBudget(100);
        Keyspace keyspace = new Keyspace(
                store.real(),
                Namespace.objects("near", "default"),
                store.time(),
                store.time(),
                new KeyspaceOptions(
                        Duration.ZERO,
                        0,
                        Duration.ofSeconds(5),
                        0,
                        new KeyspaceLimits(100, 100, ByteBudget.unlimited(), leaving)));
        try (EmbeddedConnection writing = connect(Spoken.RESP, keyspace);
                EmbeddedConnection embeddedConnection = connect(spoken, keyspace)) {
            assertThat(writing.ask("SET k value\r\n")).isEqualTo("+OK\r\n");
            assertThat(leaving.tryAcquire(100)).isTrue();
            assertThat(embeddedConnection.ask(spoken.request)).startsWith(spoken.miss);
            assertThat(keyspace.stats().reads().of(Reason.BUSY)).isEqualTo(1);
            leaving.release(100);
            assertThat(embeddedConnection.ask(spoken.request)).startsWith(spoken.reply);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"STRLEN k", "TTL k", "EXPIRE k 9", "SETNX k new", "SET k new KEEPTTL", "SET k new GET"})
    void givenAValueFromBeforeARestart_whenItsTimeIsUp_thenNothingIsSaidOrStoredThatNeedsIt(String request) {
        store.put("k", "value");
        store.restart();
        try (EmbeddedConnection embeddedConnection = connect(Spoken.RESP)) {
            embeddedConnection.send(request + "\r\nGET k\r\n");
            store.timeOutFetch();
            embeddedConnection.channel().runPendingTasks();
            assertThat(embeddedConnection.text())
                    .isEqualTo("-TRYAGAIN the value is on disk and did not come in time\r\n");
            assertThat(arrived(embeddedConnection)).isEqualTo("$5\r\nvalue\r\n");
        }
        assertThat(store.held()).isZero();
    }

    @ParameterizedTest
    @EnumSource
    void givenAValueOnItsWay_whenTheClientLeaves_thenNothingIsHeld(Spoken spoken) {
        store.put("k", "value");
        EmbeddedConnection embeddedConnection = connect(spoken);
        embeddedConnection.send(spoken.request);
        embeddedConnection.close();
        store.completeFetch();
        embeddedConnection.channel().runPendingTasks();

        assertThat(store.held()).isZero();
        assertThat(embeddedConnection.text()).isEmpty();
    }

    @ParameterizedTest
    @EnumSource
    void givenAValueOnItsWay_whenTheServerDrains_thenItIsAnsweredFirst(Spoken spoken) {
        store.put("k", "value");
        try (EmbeddedConnection embeddedConnection = connect(spoken)) {
            embeddedConnection.send(spoken.request);
            connectionRegistry.drain();
            embeddedConnection.channel().runPendingTasks();
            assertThat(embeddedConnection.isOpen()).isTrue();

            assertThat(arrived(embeddedConnection)).startsWith(spoken.reply);
            assertThat(embeddedConnection.isOpen()).isFalse();
        }
    }

    @Test
    void givenASetThatAsksForTheOlderValue_whenTheClientLeaves_thenTheKeyCanBeWritten() {
        store.put("k", "value");
        EmbeddedConnection leaving = connect(Spoken.RESP);
        leaving.send("*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\nnew\r\n$3\r\nGET\r\n");
        leaving.close();
        store.completeFetch();
        leaving.channel().runPendingTasks();

        assertThat(store.held()).isZero();
        try (EmbeddedConnection embeddedConnection = connect(Spoken.RESP)) {
            assertThat(embeddedConnection.ask("SET k newer\r\n")).isEqualTo("+OK\r\n");
        }
    }

    @ParameterizedTest
    @CsvSource({"SETNX k new, :1", "SET k new NX, +OK", "SET k new XX, $-1"})
    void givenAValueFromBeforeARestart_whenItHasExpiredAsItComes_thenItsSuccessorFindsTheKeyAbsent(
            String request, String reply) {
        store.put("k", "value", store.time().millis() + 10);
        store.restart();
        store.time().advance(Duration.ofMillis(20));
        try (EmbeddedConnection embeddedConnection = connect(Spoken.RESP)) {
            embeddedConnection.send(request + "\r\n");
            assertThat(arrived(embeddedConnection)).isEqualTo(reply + "\r\n");
        }
        store.keyspace().tick();
        assertThat(store.keyspace().count()).isEqualTo(reply.equals("$-1") ? 0 : 1);
    }
}
