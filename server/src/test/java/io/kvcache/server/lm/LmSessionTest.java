package io.kvcache.server.lm;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Repetitions;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.NetLimits;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("slow")
final class LmSessionTest {

    private static final String KEY = "vllm@org/model-7B@2@0@-1a2b%c";

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

    private static byte[] all(byte[]... parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            all.writeBytes(part);
        }
        return all.toByteArray();
    }

    /// A conversation of every command, and what the client expects back.
    private static byte[] said(LmTestClient client) {
        return all(
                client.ask(LmTestClient.HEALTH, ""),
                client.ask(LmTestClient.EXIST, KEY),
                client.ask(LmTestClient.GET, KEY),
                client.put(KEY, LmTestClient.META, "some bytes".getBytes(StandardCharsets.US_ASCII)),
                client.ask(LmTestClient.EXIST, KEY),
                client.ask(LmTestClient.GET, KEY),
                client.put(KEY, new LmTestClient.Meta(3, 4, 0, 1, 0, 0, 0), new byte[] {1, 2}),
                client.ask(LmTestClient.GET, KEY),
                client.ask(LmTestClient.LIST, ""));
    }

    private static byte[] expected(LmTestClient client) {
        return all(
                client.success(),
                client.fail(),
                client.fail(),
                client.success(),
                client.reply(200, LmTestClient.META, "some bytes".getBytes(StandardCharsets.US_ASCII)),
                client.reply(200, new LmTestClient.Meta(3, 4, 0, 1, 0, 0, 0), new byte[] {1, 2}),
                client.reply(200, LmTestClient.NO_META, KEY.getBytes(StandardCharsets.US_ASCII)));
    }

    @Test
    void givenEveryCommand_whenAllIsPipelinedOrCutAnywhere_thenRepliesAreTheSame() {
        LmTestClient client = new LmTestClient();
        byte[] said = said(client);
        int step = Repetitions.usualOrFull(3, 1);
        for (int cut = 0; cut < said.length; cut += step) {
            test.keyspace().clear();
            try (EmbeddedConnection embeddedConnection = connect()) {
                embeddedConnection.send(Arrays.copyOf(said, cut)).send(Arrays.copyOfRange(said, cut, said.length));
                assertThat(embeddedConnection.bytes()).as("cut at %d", cut).isEqualTo(expected(client));
            }
        }
    }

    @Test
    void givenEveryCommand_whenSentByteByByte_thenRepliesAreTheSame() {
        LmTestClient client = new LmTestClient();
        try (EmbeddedConnection embeddedConnection = connect()) {
            for (byte each : said(client)) {
                embeddedConnection.send(new byte[] {each});
            }
            assertThat(embeddedConnection.bytes()).isEqualTo(expected(client));
        }
    }

    @Test
    void givenMoreKeysThanOnePage_whenListed_thenOthersHaveTheirTurnsAndAllAreThere() {
        LmTestClient client = new LmTestClient();
        int count = LmSession.LIST_PAGE_KEYS + 1000;
        List<String> keys = new ArrayList<>();
        List<byte[]> between = new ArrayList<>();
        try (EmbeddedConnection embeddedConnection = connect()) {
            for (int i = 0; i < count; i++) {
                keys.add("model@" + i);
                embeddedConnection.send(client.put(keys.getLast(), LmTestClient.META, new byte[] {1}));
            }
            embeddedConnection.channel().eventLoop().execute(() -> between.add(embeddedConnection.bytes()));
            embeddedConnection.send(all(client.ask(LmTestClient.LIST, ""), client.ask(LmTestClient.HEALTH, "")));
            assertThat(between).as("what is answered before others have a turn").containsExactly(new byte[0]);
            byte[] reply = embeddedConnection.bytes();
            int listed = reply.length - 2 * client.success().length;
            String text = new String(reply, client.success().length, listed, StandardCharsets.US_ASCII);
            assertThat(text.lines().sorted().toList())
                    .isEqualTo(keys.stream().sorted().toList());
            assertThat(Arrays.copyOfRange(reply, reply.length - client.success().length, reply.length))
                    .isEqualTo(client.success());
        }
    }

    @Test
    void givenALargeValueAndTheLongestKey_whenPutAndGot_thenEveryByteIsRight() {
        LmTestClient client = new LmTestClient();
        String key = "k".repeat(150);
        byte[] body = TestKeyspace.content(1, 5_000_003);
        try (EmbeddedConnection embeddedConnection = connect()) {
            byte[] frame = client.put(key, LmTestClient.META, body);
            for (int at = 0; at < frame.length; at += 70_001) {
                embeddedConnection.send(Arrays.copyOfRange(frame, at, Math.min(frame.length, at + 70_001)));
            }
            assertThat(embeddedConnection.bytes()).isEmpty();
            assertThat(embeddedConnection
                            .send(client.ask(LmTestClient.GET, key))
                            .bytes())
                    .isEqualTo(client.reply(200, LmTestClient.META, body));
        }
    }

    @Test
    void givenAnEqualValueIsHere_whenPutAgain_thenItIsNotStoredAgain() {
        LmTestClient client = new LmTestClient();
        try (EmbeddedConnection embeddedConnection = connect()) {
            embeddedConnection.send(client.put(KEY, LmTestClient.META, new byte[] {1, 2}));
            embeddedConnection.send(client.put(KEY, LmTestClient.META, new byte[] {1, 2}));
            embeddedConnection.send(client.put(KEY, LmTestClient.NO_META, new byte[] {1, 2}));
        }
        assertThat(test.keyspace().stats().writes().stored()).isEqualTo(2);
    }

    @Test
    void givenAllIsPinned_whenPut_thenItIsDrainedInSilenceAndTheOlderOneIsGone() {
        LmTestClient client = new LmTestClient();
        byte[] body = TestKeyspace.content(1, 2 << 20);
        try (EmbeddedConnection embeddedConnection = connect()) {
            embeddedConnection.send(client.put(KEY, LmTestClient.META, new byte[] {1}));
            List<PinnedValue> held = new ArrayList<>();
            for (int i = 0; test.put("f" + i, TestKeyspace.content(i, 1 << 20)) == PendingPut.State.WRITING; i++) {
                held.add(Objects.requireNonNull(test.keyspace().get(TestKeyspace.key("f" + i))));
            }
            embeddedConnection.send(client.put(KEY, LmTestClient.META, body)).send(client.ask(LmTestClient.GET, KEY));

            assertThat(embeddedConnection.bytes()).isEqualTo(client.fail());
            assertThat(protocol.droppedSilentlyCount()).isEqualTo(1);
            held.forEach(PinnedValue::close);
        }
    }

    @Test
    void givenAValueLargerThanTheStoreTakes_whenPut_thenItIsDrainedAndTheOlderOneIsGone() {
        LmTestClient client = new LmTestClient();
        try (EmbeddedConnection embeddedConnection = connect()) {
            embeddedConnection.send(client.put(KEY, LmTestClient.META, new byte[] {1}));
            embeddedConnection.send(client.request(1, 300_000_000, LmTestClient.META, KEY));
            byte[] part = new byte[1_000_000];
            for (int i = 0; i < 300; i++) {
                embeddedConnection.send(part);
            }
            assertThat(embeddedConnection
                            .send(client.ask(LmTestClient.GET, KEY))
                            .bytes())
                    .isEqualTo(client.fail());
        }
        assertThat(protocol.droppedSilentlyCount()).isEqualTo(1);
    }

    @Test
    void givenAnotherWriterOfTheKey_whenGotAfterPut_thenTheClientReadsItsOwn() {
        LmTestClient client = new LmTestClient();
        byte[] slow = client.put(KEY, LmTestClient.META, new byte[] {1, 2, 3});
        try (EmbeddedConnection first = connect();
                EmbeddedConnection second = connect()) {
            first.send(Arrays.copyOf(slow, slow.length - 1));
            second.send(client.put(KEY, LmTestClient.META, new byte[] {9, 9, 9}))
                    .send(client.ask(LmTestClient.GET, KEY));
            assertThat(second.bytes()).isEqualTo(client.reply(200, LmTestClient.META, new byte[] {9, 9, 9}));

            first.send(new byte[] {3});

            second.send(client.ask(LmTestClient.GET, KEY));
            assertThat(second.bytes()).isEqualTo(client.reply(200, LmTestClient.META, new byte[] {1, 2, 3}));
        }
    }

    @Test
    void givenNoSuchCommandOrLength_whenSent_thenTheConnectionIsClosed() {
        LmTestClient client = new LmTestClient();
        for (byte[] wrong :
                List.of(client.ask(6, KEY), client.ask(0, KEY), client.request(1, -1, LmTestClient.META, KEY))) {
            try (EmbeddedConnection embeddedConnection = connect()) {
                embeddedConnection.send(wrong);
                assertThat(embeddedConnection.isOpen()).isFalse();
                assertThat(embeddedConnection.bytes()).isEmpty();
            }
        }
        assertThat(connectionRegistry.closedCount(CloseReason.PROTOCOL_ERROR)).isEqualTo(3);
    }

    @ParameterizedTest
    @ValueSource(ints = {8, 32})
    void givenAKeyWhereAnOlderLayoutHasIt_whenItsBeginningIsSent_thenTheConnectionIsClosed(int keyOffset) {
        byte[] older = new byte[keyOffset + KEY.length()];
        older[0] = LmTestClient.GET;
        System.arraycopy(KEY.getBytes(StandardCharsets.US_ASCII), 0, older, keyOffset, KEY.length());
        try (EmbeddedConnection embeddedConnection = connect()) {
            embeddedConnection.send(older);
            assertThat(embeddedConnection.isOpen()).isFalse();
            assertThat(embeddedConnection.bytes()).isEmpty();
        }
        assertThat(connectionRegistry.closedCount(CloseReason.PROTOCOL_ERROR)).isOne();
    }

    @Test
    void givenAProbe_whenItConnectsAndLeaves_thenItIsNoError() {
        connect().close();
        assertThat(connectionRegistry.closedCount(CloseReason.CLIENT)).isEqualTo(1);
        assertThat(protocol.protocolErrorCount()).isZero();
    }
}
