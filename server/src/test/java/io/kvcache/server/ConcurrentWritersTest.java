package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.NetLimits;
import java.time.Duration;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// A writer of a key that ends without a value, and another one of the same key whose value was acknowledged.
@Tag("slow")
final class ConcurrentWritersTest {

    private static final String LM_KEY = "\0".repeat(28) + "k" + " ".repeat(149);

    private final ProtocolTestHarness port = new ProtocolTestHarness();
    private final ConnectionRegistry connectionRegistry = EmbeddedConnection.registry(
            new NetLimits(10, Duration.ZERO, Duration.ofSeconds(10)),
            port.test().time());
    private final EmbeddedConnection reader = port.connect(connectionRegistry);

    @AfterEach
    void close() {
        reader.close();
        port.close();
    }

    /// How the first writer ends.
    enum End {
        DISCONNECT,
        NX_REFUSED,
        TOO_SLOW,
        OVERSIZE
    }

    /// The second writer's request, and the reply to it.
    enum Second {
        SET("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\n", "newest", "\r\n", "+OK\r\n"),
        SET_OF_A_CLIENT_THAT_SAID_PING(
                "PING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\n", "newest", "\r\n", "+PONG\r\n+OK\r\n"),
        SET_XX("*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\n", "newest", "\r\n$2\r\nXX\r\n", "+OK\r\n"),
        MSET("*5\r\n$4\r\nMSET\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nk\r\n$6\r\n", "newest", "\r\n", "+OK\r\n"),
        LM_PUT("\1\0\0\0" + "\6\0\0\0" + LM_KEY, "newest", "", ""),
        HTTP_PUT(
                "PUT /v1/objects/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\n",
                "newest",
                "",
                "HTTP/1.1 204");

        private final String before;
        private final String value;
        private final String after;
        private final String reply;

        Second(String before, String value, String after, String reply) {
            this.before = before;
            this.value = value;
            this.after = after;
            this.reply = reply;
        }
    }

    static Stream<Arguments> pairs() {
        return Arrays.stream(End.values())
                .flatMap(end -> Arrays.stream(Second.values())
                        .flatMap(second -> Stream.of(true, false).map(first -> Arguments.of(end, second, first))));
    }

    @ParameterizedTest
    @MethodSource("pairs")
    void givenAWriterThatEndsWithoutAValue_whenAnotherWasAcknowledged_thenItsValueIsRead(
            End end, Second second, boolean acknowledgedFirst) {
        assertThat(reader.ask("SET k older\r\n")).isEqualTo("+OK\r\n");
        try (EmbeddedConnection first = port.connect(connectionRegistry);
                EmbeddedConnection other = port.connect(connectionRegistry)) {
            begin(first, end);
            other.send(second.before).send(second.value.substring(0, 3));
            if (acknowledgedFirst) {
                other.send(second.value.substring(3) + second.after);
            }
            end(first, end);
            if (!acknowledgedFirst) {
                other.send(second.value.substring(3) + second.after);
            }
            assertThat(other.text()).startsWith(second.reply);
        }
        assertThat(reader.ask("GET k\r\n")).isEqualTo("$6\r\nnewest\r\n");
    }

    private static void begin(EmbeddedConnection first, End end) {
        first.ask("PING\r\n");
        switch (end) {
            case DISCONNECT, TOO_SLOW -> first.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\nbroken");
            case NX_REFUSED -> first.send("*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\nbro");
            case OVERSIZE -> first.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$500000000\r\nbroken");
        }
    }

    private void end(EmbeddedConnection first, End end) {
        switch (end) {
            case DISCONNECT, OVERSIZE -> first.channel().close();
            case NX_REFUSED -> assertThat(first.ask("ken\r\n$2\r\nNX\r\n")).isEqualTo("$-1\r\n");
            case TOO_SLOW -> {
                // Only the first of them stands still: the others begin their steps anew.
                connectionRegistry.openConnections().stream()
                        .filter(each -> !each.channel().equals(first.channel()))
                        .forEach(each -> each.setServerWaiting(true));
                pass(11);
                assertThat(first.text()).contains("slower than 64 KiB/s for 10 s");
                assertThat(first.isOpen()).isFalse();
                connectionRegistry.openConnections().forEach(each -> each.setServerWaiting(false));
            }
        }
    }

    private void pass(int seconds) {
        for (int i = 0; i < seconds; i++) {
            port.test().time().advance(Duration.ofSeconds(1));
            connectionRegistry.tick();
        }
    }

    /// 33 KB each 24 s were enough once to hold a key for hours.
    @Test
    void givenAnUploadBelowTheLeastRate_whenItGoesOn_thenItIsCutAndToldWhy() {
        byte[] drip = new byte[33_000];
        String resp = "PING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9000000\r\n";
        String lm = "\1\0\0\0" + "\0\0\220\0" + LM_KEY;
        String http = "PUT /v1/objects/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n";
        for (String begin : new String[] {resp, lm, http}) {
            try (EmbeddedConnection slow = port.connect(connectionRegistry)) {
                slow.send(begin);
                slow.bytes();
                for (int i = 0; i < 4 && slow.isOpen(); i++) {
                    slow.send(drip);
                    pass(9);
                }
                assertThat(slow.isOpen()).isFalse();
                String said = slow.text();
                if (begin.equals(resp)) {
                    assertThat(said).startsWith("-ERR the request came slower than 64 KiB/s for 10 s");
                } else if (begin.equals(http)) {
                    assertThat(said).startsWith("HTTP/1.1 408").contains("slower than 64 KiB/s for 10 s");
                } else {
                    assertThat(said).as("nothing may be said").isEmpty();
                }
            }
        }
        assertThat(connectionRegistry.closedCount(CloseReason.STALLED_REQUEST)).isEqualTo(3);
        assertThat(port.test().cache().stats().host().heldBytes()).isZero();
    }

    @Test
    void givenAnUploadAboveTheLeastRate_whenItTakesManyTimesTheStallTime_thenItIsStored() {
        byte[] part = new byte[70_000];
        try (EmbeddedConnection steady = port.connect(connectionRegistry)) {
            steady.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$" + 60 * part.length + "\r\n");
            for (int i = 0; i < 60; i++) {
                steady.send(part);
                pass(1);
            }
            assertThat(steady.ask("\r\n")).isEqualTo("+OK\r\n");
        }
    }
}
