package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.quota.ByteBudget;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// How much of the heap requests may take that are not answered yet.
final class RequestMemoryTest {

    private static final int LIMIT = 1 << 20;

    private final ByteBudget arguments = new ByteBudget(LIMIT);
    private final EmbeddedRespServer resp = new EmbeddedRespServer(arguments);
    private final EmbeddedConnection embeddedConnection = resp.embeddedConnection();

    @AfterEach
    void close() {
        resp.close();
    }

    /// The beginning of a DEL of many long keys.
    private static byte[] half(int keys) {
        String key = "$4000\r\n" + "k".repeat(4000) + "\r\n";
        return ("*" + (keys + 2) + "\r\n$3\r\nDEL\r\n" + key.repeat(keys)).getBytes(StandardCharsets.US_ASCII);
    }

    private static byte[] end() {
        return "$1\r\nk\r\n".getBytes(StandardCharsets.US_ASCII);
    }

    @Test
    void givenClientsThatSayHalfOfMuch_whenTheHeapForThatIsTaken_thenTheLastIsCutOffAndSmallRequestsAreAnswered() {
        embeddedConnection.send(half(200));
        try (EmbeddedConnection second = resp.connect();
                EmbeddedConnection third = resp.connect()) {
            second.send(half(200));
            assertThat(second.text())
                    .startsWith("-ERR Protocol error: requests take all of the " + LIMIT + " bytes of heap");
            assertThat(second.channel().isOpen()).isFalse();
            assertThat(resp.connectionRegistry().closedCount(CloseReason.PROTOCOL_ERROR))
                    .isEqualTo(1);
            assertThat(third.send(half(10)).send(end()).text()).isEqualTo(":0\r\n");
            assertThat(arguments.rejectedCount()).isEqualTo(1);
        }
        assertThat(arguments.usedBytes()).isBetween(700_000L, 800_000L);
        assertThat(embeddedConnection.send(end()).text()).isEqualTo(":0\r\n");
        assertThat(arguments.usedBytes()).isZero();
    }

    @Test
    void givenALargeRequest_whenItsClientLeaves_thenItsHeapIsThereForOthers() {
        try (EmbeddedConnection leaving = resp.connect()) {
            leaving.send(half(250));
            assertThat(arguments.usedBytes()).isPositive();
        }
        assertThat(arguments.usedBytes()).isZero();
        assertThat(embeddedConnection.send(half(250)).send(end()).text()).isEqualTo(":0\r\n");
    }

    @Test
    void givenOneRequestAboveTheWholeLimit_whenNothingElseIsSaid_thenItIsCutOffThere() {
        assertThat(embeddedConnection.send(half(900)).send(end()).text()).contains("bytes of heap");
        assertThat(arguments.usedBytes()).isZero();
    }

    @Test
    void givenManyEmptyArguments_whenRead_thenWhatTheyTakeBesideTheirBytesCounts() {
        String empty = "$0\r\n\r\n";
        embeddedConnection.send(("*60000\r\n$3\r\nDEL\r\n" + empty.repeat(30_000)).getBytes(StandardCharsets.US_ASCII));
        assertThat(arguments.usedBytes()).isGreaterThan(800_000);
    }
}
