package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.log.LogCapture;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.resp.WriteCommands.DroppedValueLog;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Several writers of one key, and writers when there is no room.
final class RespConcurrentWritersTest {

    private static final int MIB = 1 << 20;

    private final EmbeddedRespServer resp = new EmbeddedRespServer();
    private final EmbeddedConnection other = resp.connect();

    @AfterEach
    void close() {
        other.close();
        resp.close();
    }

    private void beginSlowWrite() {
        other.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nslo");
    }

    @Test
    void givenAnotherWriterOfTheKey_whenBothFinish_thenTheLastToFinishWins() {
        beginSlowWrite();
        assertThat(resp.ask("SET", "k", "quick")).isEqualTo("+OK\r\n");
        assertThat(resp.ask("GET", "k")).isEqualTo("$5\r\nquick\r\n");

        assertThat(other.ask("ws\r\n")).isEqualTo("+OK\r\n");
        assertThat(resp.ask("GET", "k")).isEqualTo("$5\r\nslows\r\n");
    }

    @Test
    void givenAnotherWriterOfTheKey_whenTheOptionsAskOfTheOlderValue_thenEachSeesWhatIsThereAtItsEnd() {
        other.send("*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nslo");
        assertThat(resp.ask("SET", "k", "quick", "NX")).isEqualTo("+OK\r\n");
        assertThat(other.ask("ws\r\n$3\r\nGET\r\n")).isEqualTo("$5\r\nquick\r\n");

        other.send("*4\r\n$3\r\nSET\r\n$3\r\nnew\r\n$5\r\nslo");
        assertThat(resp.ask("SET", "new", "quick", "XX")).isEqualTo("$-1\r\n");
        assertThat(resp.ask("SET", "new", "quick")).isEqualTo("+OK\r\n");
        assertThat(other.ask("ws\r\n$2\r\nNX\r\n")).isEqualTo("$-1\r\n");
        assertThat(resp.ask("GET", "new")).isEqualTo("$5\r\nquick\r\n");
    }

    @Test
    void givenAKeyTwiceInOneMset_whenStored_thenTheLastValueStands() {
        assertThat(resp.ask("MSET", "a", "1", "b", "9", "a", "2")).isEqualTo("+OK\r\n");
        assertThat(resp.ask("MGET", "a", "b")).isEqualTo("*2\r\n$1\r\n2\r\n$1\r\n9\r\n");
    }

    @Test
    void givenAValueWhoseTimeEndsWhileItsSuccessorComes_whenThatIsComplete_thenItStands() {
        resp.ask("SET", "k", "older", "PX", "10");
        beginSlowWrite();
        resp.test().time().advance(Duration.ofMillis(20));
        resp.test().keyspace().tick();
        assertThat(resp.ask("GET", "k")).isEqualTo("$-1\r\n");

        assertThat(other.ask("ws\r\n")).isEqualTo("+OK\r\n");
        assertThat(resp.ask("GET", "k")).isEqualTo("$5\r\nslows\r\n");
    }

    /// LMCache's native client reads five bytes after a SET, whatever they are.
    @Test
    void givenOnlyNativeCommands_whenAValueIsRefusedForItsSize_thenItIsToldOkAndFindsNothing() {
        assertThat(resp.ask("SET", "k", "older")).isEqualTo("+OK\r\n");
        resp.embeddedConnection().send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000000\r\n");
        byte[] part = new byte[1_000_000];
        for (int i = 0; i < 300; i++) {
            resp.embeddedConnection().send(part);
        }
        try (LogCapture logCapture = new LogCapture(DroppedValueLog.class.getName())) {
            assertThat(resp.embeddedConnection().ask("\r\n")).isEqualTo("+OK\r\n");
            assertThat(resp.ask("SET", "k".repeat(5000), "v")).isEqualTo("+OK\r\n");
            assertThat(logCapture.messages()).hasSize(2);
            assertThat(logCapture.messages().getFirst())
                    .contains(
                            "value of 300000000 bytes",
                            "the key has 1 bytes",
                            "limits.value_bytes",
                            "kv_dropped_total");
            assertThat(logCapture.messages().getFirst()).containsOnlyOnce("268435408");
            assertThat(logCapture.messages().getLast())
                    .contains("key of 5000 bytes; it takes 1 to 4096", "limits.key_bytes", "kv_dropped_total")
                    .doesNotContain("the key has");
        }
        assertThat(resp.ask("GET", "k")).isEqualTo("$-1\r\n");
        assertThat(resp.protocol().droppedAfterOkCount()).isEqualTo(2);
    }

    @Test
    void givenTwoThatSetTheSameKeysInOtherOrders_whenBothFinish_thenNeitherWaitsForEver() {
        other.send("*5\r\n$4\r\nMSET\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n");
        resp.embeddedConnection().send("*5\r\n$4\r\nMSET\r\n$1\r\nb\r\n$1\r\n2\r\n$1\r\na\r\n$1\r\n2\r\n");
        other.send("1\r\n");

        assertThat(other.text()).isEqualTo("+OK\r\n");
        assertThat(resp.embeddedConnection().text()).isEqualTo("+OK\r\n");
        assertThat(resp.ask("MGET", "a", "b")).isEqualTo("*2\r\n$1\r\n1\r\n$1\r\n1\r\n");
    }

    @Test
    void givenAllIsPinned_whenTheNativeClientSets_thenItIsToldOkAndTheOlderValueIsGone() {
        resp.ask("SET", "k", "older");
        List<PinnedValue> held = pinEverything();
        String value = "x".repeat(MIB);

        assertThat(resp.ask("SET", "k", value)).isEqualTo("+OK\r\n");
        assertThat(resp.ask("GET", "k")).isEqualTo("$-1\r\n");
        assertThat(resp.protocol().droppedAfterOkCount()).isEqualTo(1);
        held.forEach(PinnedValue::close);
    }

    @Test
    void givenAllIsPinned_whenAnyOtherClientSets_thenItIsToldAndTheOlderValueStays() {
        resp.ask("SET", "k", "older");
        List<PinnedValue> held = pinEverything();
        String value = "x".repeat(MIB);

        assertThat(resp.ask("SET", "k", value, "EX", "10")).startsWith("-OOM");
        resp.ask("PING");
        assertThat(resp.ask("SET", "k", value)).startsWith("-OOM");
        assertThat(resp.ask("MSET", "k", value)).startsWith("-OOM");
        assertThat(resp.ask("GET", "k")).isEqualTo("$5\r\nolder\r\n");
        assertThat(resp.protocol().droppedAfterOkCount()).isZero();
        held.forEach(PinnedValue::close);
    }

    private List<PinnedValue> pinEverything() {
        List<PinnedValue> held = new ArrayList<>();
        String value = "y".repeat(MIB);
        held.add(Objects.requireNonNull(resp.test().keyspace().get(new byte[] {'k'})));
        try (EmbeddedConnection filler = resp.connect()) {
            for (int i = 0; ; i++) {
                filler.ask("PING\r\n");
                if (!filler.send(EmbeddedRespServer.frame("SET", "f" + i, value))
                        .text()
                        .equals("+OK\r\n")) {
                    return held;
                }
                held.add(Objects.requireNonNull(
                        resp.test().keyspace().get(("f" + i).getBytes(StandardCharsets.US_ASCII))));
            }
        }
    }
}
