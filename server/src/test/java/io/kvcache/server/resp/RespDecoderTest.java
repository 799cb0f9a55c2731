package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.EmbeddedConnection;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class RespDecoderTest {

    private final EmbeddedRespServer resp = new EmbeddedRespServer();

    @AfterEach
    void close() {
        resp.close();
    }

    /// A conversation that meets every state of the decoder, and what it is answered.
    private static byte[] conversation() {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.writeBytes(EmbeddedRespServer.frame("SET", "key", "value\r\nwith an end"));
        all.writeBytes("GET key\r\n".getBytes(StandardCharsets.US_ASCII));
        all.writeBytes("*0\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
        all.writeBytes(EmbeddedRespServer.frame("MSET", "a", "", "b", "22"));
        all.writeBytes("set \"in line\" 'it s'\n".getBytes(StandardCharsets.US_ASCII));
        all.writeBytes(EmbeddedRespServer.frame("MGET", "a", "b", "in line"));
        all.writeBytes(EmbeddedRespServer.frame("PING"));
        return all.toByteArray();
    }

    private static final String ANSWERS = String.join(
            "\r\n",
            "+OK",
            "$18",
            "value",
            "with an end",
            "+OK",
            "+OK",
            "*3",
            "$0",
            "",
            "$2",
            "22",
            "$4",
            "it s",
            "+PONG",
            "");

    @Test
    void givenOneByteAtATime_whenSent_thenTheAnswersAreTheSame() {
        for (byte each : conversation()) {
            resp.embeddedConnection().send(new byte[] {each});
        }
        assertThat(resp.embeddedConnection().text()).isEqualTo(ANSWERS);
    }

    @Test
    void givenAllAtOnce_whenSent_thenTheAnswersAreTheSame() {
        assertThat(resp.embeddedConnection().send(conversation()).text()).isEqualTo(ANSWERS);
    }

    @Test
    void givenACutAtEveryPlace_whenSent_thenTheAnswersAreTheSame() {
        byte[] all = conversation();
        for (int cut = 1; cut < all.length; cut++) {
            try (EmbeddedConnection embeddedConnection = resp.connect()) {
                embeddedConnection.send(Arrays.copyOf(all, cut)).send(Arrays.copyOfRange(all, cut, all.length));
                assertThat(embeddedConnection.text()).as("cut at %d", cut).isEqualTo(ANSWERS);
            }
        }
    }

    @Test
    void givenALargeValueInRaggedPieces_whenSent_thenItIsStoredByteForByte() {
        byte[] value = TestKeyspace.content(7, 3_000_000);
        byte[] frame = EmbeddedRespServer.frame("SET".getBytes(StandardCharsets.US_ASCII), new byte[] {'k'}, value);
        Random random = new Random(8);
        for (int at = 0; at < frame.length; ) {
            int part = Math.min(frame.length - at, 1 + random.nextInt(100_000));
            resp.embeddedConnection().send(Arrays.copyOfRange(frame, at, at + part));
            at += part;
        }
        assertThat(resp.embeddedConnection().text()).isEqualTo("+OK\r\n");
        byte[] answer = resp.embeddedConnection()
                .send(EmbeddedRespServer.frame("GET", "k"))
                .bytes();
        assertThat(Arrays.copyOfRange(answer, 10, answer.length - 2)).isEqualTo(value);
    }

    @ParameterizedTest
    @CsvSource({
        "'*-x\r\n', invalid multibulk length",
        "'*99999999\r\n', invalid multibulk length",
        "'*1\r\n$-5\r\n', invalid bulk length",
        "'*1\r\n$2147483648\r\n', invalid bulk length",
        "'*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2147483648\r\n', invalid bulk length",
        "'*1\r\n:1\r\n', 'expected ''$'', got '':'''",
        "'*1\r\n$2\r\nabcd', expected CRLF after a bulk string",
        "'*1\r\n$70000\r\n', argument of 70000 bytes",
        "'set \"a b\r\n', unbalanced quotes in request",
        "'*11111111111111111111111111111111111111111', too big mbulk count string"
    })
    void givenNoProtocol_whenSent_thenItIsSaidCountedAndClosed(String sent, String error) {
        String answer = resp.embeddedConnection().ask(sent);

        assertThat(answer).startsWith("-ERR Protocol error: " + error);
        assertThat(resp.embeddedConnection().isOpen()).isFalse();
        assertThat(resp.connectionRegistry().closedCount(CloseReason.PROTOCOL_ERROR))
                .isEqualTo(1);
    }

    @Test
    void givenAValueLargerThanTheStoreTakes_whenSent_thenItIsSkippedAndSaid() {
        assertThat(resp.embeddedConnection().ask("PING\r\n")).isEqualTo("+PONG\r\n");
        resp.embeddedConnection().send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000000\r\n");
        byte[] part = new byte[1_000_000];
        for (int i = 0; i < 300; i++) {
            resp.embeddedConnection().send(part);
        }
        assertThat(resp.embeddedConnection().ask("\r\nPING\r\n"))
                .startsWith("-ERR value of 300000000 bytes; it takes 0 to 268435")
                .endsWith("+PONG\r\n");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 10, 100_000})
    void givenTheClientLeavesMidValue_whenItIsGone_thenItsRoomIsGivenBack(int sent) {
        resp.embeddedConnection()
                .send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$200000\r\n")
                .send(new byte[sent]);
        resp.embeddedConnection().close();

        assertThat(resp.test().cache().stats().host().heldBytes()).isZero();
        assertThat(resp.connectionRegistry().closedCount(CloseReason.CLIENT_MID_REQUEST))
                .isEqualTo(1);
    }

    @Test
    void givenManyRequestsInOnePacket_whenSent_thenEachIsAnsweredInOrder() {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        StringBuilder expected = new StringBuilder();
        for (int i = 0; i < 1000; i++) {
            all.writeBytes(EmbeddedRespServer.frame("SET", "k" + i % 10, "v" + i));
            all.writeBytes(EmbeddedRespServer.frame("GET", "k" + i % 10));
            expected.append("+OK\r\n$")
                    .append(("v" + i).length())
                    .append("\r\nv")
                    .append(i)
                    .append("\r\n");
        }
        assertThat(resp.embeddedConnection().send(all.toByteArray()).text()).isEqualTo(expected.toString());
    }
}
