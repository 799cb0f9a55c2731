package io.kvcache.server.lm;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.NetLimits;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Requests that clients of `lm://` send seldom, or when they are broken.
final class LmEdgeTest {

    private final TestKeyspace test = TestKeyspace.small();
    private final ConnectionRegistry connectionRegistry =
            EmbeddedConnection.registry(NetLimits.defaults(), test.time());
    private final LmProtocol protocol = new LmProtocol(KeyspaceRouter.of(test.keyspace()));

    @AfterEach
    void close() {
        test.close();
    }

    private EmbeddedConnection connect() {
        return new EmbeddedConnection(protocol, connectionRegistry);
    }

    private void requireNothingHeld() {
        test.keyspace().clear();
        assertThat(test.cache().stats().host().heldBytes()).isZero();
        assertThat(test.cache().stats().openTables()).isZero();
    }

    @Test
    void givenAClientThatGoesInTheMiddleOfABody_whenItIsGone_thenTheOlderValueStaysAndNothingElse() {
        LmTestClient client = new LmTestClient();
        byte[] older = TestKeyspace.content(1, 70_000);
        byte[] newer = client.put("k", LmTestClient.META, TestKeyspace.content(2, 100_000));
        try (EmbeddedConnection embeddedConnection = connect()) {
            embeddedConnection
                    .send(client.put("k", LmTestClient.META, older))
                    .send(Arrays.copyOf(newer, newer.length - 1));
        }
        assertThat(connectionRegistry.closedCount(CloseReason.CLIENT_MID_REQUEST))
                .isEqualTo(1);
        try (EmbeddedConnection embeddedConnection = connect()) {
            assertThat(embeddedConnection
                            .send(client.ask(LmTestClient.GET, "k"))
                            .bytes())
                    .isEqualTo(client.reply(200, LmTestClient.META, older));
        }
        requireNothingHeld();
    }

    @ParameterizedTest
    @ValueSource(ints = {2_147_483_647, 2_000_000_000})
    void givenALengthOfTwoGibibytes_whenPut_thenItIsDrainedAndTakesNoMemory(int length) {
        LmTestClient client = new LmTestClient();
        try (EmbeddedConnection embeddedConnection = connect()) {
            embeddedConnection
                    .send(client.request(LmTestClient.PUT, length, LmTestClient.META, "k"))
                    .send(new byte[1 << 20]);
            assertThat(embeddedConnection.isOpen()).isTrue();
            assertThat(embeddedConnection.bytes()).isEmpty();
            assertThat(test.cache().stats().host().heldBytes()).isZero();
        }
        assertThat(protocol.droppedSilentlyCount()).isEqualTo(1);
        assertThat(connectionRegistry.closedCount(CloseReason.CLIENT_MID_REQUEST))
                .isEqualTo(1);
        requireNothingHeld();
    }

    @ParameterizedTest
    @ValueSource(strings = {"a key with  blanks", " leading", "schl\u00fcssel \u00e4\u00f6\u00ff"})
    void givenAKeyOfAnyBytes_whenPutAndGot_thenItIsThatKeyAndNoOther(String key) {
        LmTestClient client = new LmTestClient();
        byte[] value = TestKeyspace.content(1, 100);
        try (EmbeddedConnection embeddedConnection = connect()) {
            embeddedConnection.send(client.put(key, LmTestClient.META, value));
            assertThat(embeddedConnection
                            .send(client.ask(LmTestClient.GET, key))
                            .bytes())
                    .isEqualTo(client.reply(200, LmTestClient.META, value));
            assertThat(embeddedConnection
                            .send(client.ask(LmTestClient.EXIST, key.replace(" ", "")))
                            .bytes())
                    .isEqualTo(key.contains(" ") ? client.fail() : client.success());
            assertThat(embeddedConnection
                            .send(client.ask(LmTestClient.LIST, ""))
                            .bytes())
                    .endsWith(key.getBytes(StandardCharsets.ISO_8859_1));
        }
    }
}
