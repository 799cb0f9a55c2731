package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.Value;
import io.kvcache.server.net.Wire;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Several writers of one key, and writers when there is no room.
final class RespWritersTest {

    private static final int MIB = 1 << 20;

    private final RespWire resp = new RespWire();
    private final Wire other = resp.connect();

    @AfterEach
    void close() {
        other.close();
        resp.close();
    }

    private void beginSlowWrite() {
        other.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nslo");
    }

    @Test
    void givenAnotherWriterOfTheKey_whenItFinishes_thenBothAreToldOkAndItsValueStands() {
        beginSlowWrite();
        assertThat(resp.ask("SET", "k", "quick")).isEmpty();

        assertThat(other.ask("ws\r\n")).isEqualTo("+OK\r\n");
        resp.wire().channel().runPendingTasks();

        assertThat(resp.wire().text()).isEqualTo("+OK\r\n");
        assertThat(resp.ask("GET", "k")).isEqualTo("$5\r\nslows\r\n");
        assertThat(resp.test().keyspace().stats().writes().joined()).isEqualTo(1);
    }

    @Test
    void givenAValueWhoseTimeEndsWhileItsSuccessorComes_whenThatIsComplete_thenItStands() {
        resp.ask("SET", "k", "older", "PX", "10");
        beginSlowWrite();
        resp.test().time().pass(Duration.ofMillis(20));
        resp.test().keyspace().tick();
        assertThat(resp.ask("GET", "k")).isEqualTo("$-1\r\n");

        assertThat(other.ask("ws\r\n")).isEqualTo("+OK\r\n");
        assertThat(resp.ask("GET", "k")).isEqualTo("$5\r\nslows\r\n");
    }

    /// LMCache's native client reads five bytes after a SET, whatever they are.
    @Test
    void givenOnlyNativeCommands_whenAValueIsRefusedForItsSize_thenItIsToldOkAndFindsNothing() {
        assertThat(resp.ask("SET", "k", "older")).isEqualTo("+OK\r\n");
        resp.wire().send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000000\r\n");
        byte[] part = new byte[1_000_000];
        for (int i = 0; i < 300; i++) {
            resp.wire().send(part);
        }
        assertThat(resp.wire().ask("\r\n")).isEqualTo("+OK\r\n");
        assertThat(resp.ask("SET", "k".repeat(5000), "v")).isEqualTo("+OK\r\n");
        assertThat(resp.ask("GET", "k")).isEqualTo("$-1\r\n");
        assertThat(resp.protocol().droppedAfterOkCount()).isEqualTo(2);
    }

    @Test
    void givenAnotherWriterOfTheKey_whenMoreIsPipelined_thenItWaitsItsTurn() {
        beginSlowWrite();
        resp.wire().send(RespWire.frame("SET", "k", "quick")).send("GET k\r\nPING\r\n");
        assertThat(resp.wire().text()).isEmpty();

        other.send("ws\r\n");
        resp.wire().channel().runPendingTasks();

        assertThat(resp.wire().text()).isEqualTo("+OK\r\n$5\r\nslows\r\n+PONG\r\n");
    }

    @Test
    void givenAnotherWriterOfTheKey_whenItLeaves_thenTheJoinedOneIsAnsweredAllTheSame() {
        beginSlowWrite();
        resp.ask("SET", "k", "quick");
        other.close();
        resp.wire().channel().runPendingTasks();

        assertThat(resp.wire().text()).isEqualTo("+OK\r\n");
        assertThat(resp.ask("GET", "k")).isEqualTo("$-1\r\n");
    }

    @Test
    void givenAnotherWriterOfTheKey_whenItTakesTooLong_thenTheJoinedOneIsTold() {
        beginSlowWrite();
        resp.ask("PING");
        resp.ask("SET", "k", "quick");
        resp.wire().channel().advanceTimeBy(2001, TimeUnit.MILLISECONDS);
        resp.wire().channel().runScheduledPendingTasks();

        assertThat(resp.wire().text()).startsWith("-BUSY");
        other.send("ws\r\n");
        assertThat(resp.ask("GET", "k")).isEqualTo("$5\r\nslows\r\n");
    }

    @Test
    void givenTwoThatSetTheSameKeysInOtherOrders_whenBothFinish_thenNeitherWaitsForEver() {
        other.send("*5\r\n$4\r\nMSET\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n");
        resp.wire().send("*5\r\n$4\r\nMSET\r\n$1\r\nb\r\n$1\r\n2\r\n$1\r\na\r\n$1\r\n2\r\n");
        other.send("1\r\n");
        resp.wire().channel().runPendingTasks();
        other.channel().runPendingTasks();
        resp.wire().channel().runPendingTasks();

        assertThat(other.text()).isEqualTo("+OK\r\n");
        assertThat(resp.wire().text()).isEqualTo("+OK\r\n");
    }

    @Test
    void givenAllIsPinned_whenTheNativeClientSets_thenItIsToldOkAndTheOlderValueIsGone() {
        resp.ask("SET", "k", "older");
        List<Value> held = pinEverything();
        String value = "x".repeat(MIB);

        assertThat(resp.ask("SET", "k", value)).isEqualTo("+OK\r\n");
        assertThat(resp.ask("GET", "k")).isEqualTo("$-1\r\n");
        assertThat(resp.protocol().droppedAfterOkCount()).isEqualTo(1);
        held.forEach(Value::close);
    }

    @Test
    void givenAllIsPinned_whenAnyOtherClientSets_thenItIsToldAndTheOlderValueStays() {
        resp.ask("SET", "k", "older");
        List<Value> held = pinEverything();
        String value = "x".repeat(MIB);

        assertThat(resp.ask("SET", "k", value, "EX", "10")).startsWith("-OOM");
        resp.ask("PING");
        assertThat(resp.ask("SET", "k", value)).startsWith("-OOM");
        assertThat(resp.ask("MSET", "k", value)).startsWith("-OOM");
        assertThat(resp.ask("GET", "k")).isEqualTo("$5\r\nolder\r\n");
        assertThat(resp.protocol().droppedAfterOkCount()).isZero();
        held.forEach(Value::close);
    }

    private List<Value> pinEverything() {
        List<Value> held = new ArrayList<>();
        String value = "y".repeat(MIB);
        held.add(Objects.requireNonNull(resp.test().keyspace().get(new byte[] {'k'})));
        try (Wire filler = resp.connect()) {
            for (int i = 0; ; i++) {
                filler.ask("PING\r\n");
                if (!filler.send(RespWire.frame("SET", "f" + i, value)).text().equals("+OK\r\n")) {
                    return held;
                }
                held.add(Objects.requireNonNull(
                        resp.test().keyspace().get(("f" + i).getBytes(StandardCharsets.US_ASCII))));
            }
        }
    }
}
