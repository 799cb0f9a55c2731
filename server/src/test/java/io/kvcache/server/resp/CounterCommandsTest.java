package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.EmbeddedConnection;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class CounterCommandsTest {

    private static final int CLIENTS = 4;
    private static final int STEPS = 500;

    private final EmbeddedRespServer resp = new EmbeddedRespServer();

    @AfterEach
    void close() {
        resp.close();
    }

    private String ask(String line) {
        return resp.ask(line.split(" ", -1));
    }

    @Test
    void givenNoValue_whenCounted_thenItBeginsAtZero() {
        assertThat(ask("INCR k")).isEqualTo(":1\r\n");
        assertThat(ask("INCRBY k 41")).isEqualTo(":42\r\n");
        assertThat(ask("DECR k")).isEqualTo(":41\r\n");
        assertThat(ask("DECRBY k 50")).isEqualTo(":-9\r\n");
        assertThat(ask("GET k")).isEqualTo("$2\r\n-9\r\n");
        assertThat(ask("DECR other")).isEqualTo(":-1\r\n");
    }

    @Test
    void givenAnExpiry_whenCounted_thenItStays() {
        ask("SET k 7 EX 100");
        assertThat(ask("INCR k")).isEqualTo(":8\r\n");
        assertThat(ask("TTL k")).isEqualTo(":100\r\n");
        ask("PERSIST k");
        assertThat(ask("INCR k")).isEqualTo(":9\r\n");
        assertThat(ask("TTL k")).isEqualTo(":-1\r\n");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"x", "1.5", "+1", "01", "-0", "00", "9223372036854775808", "a-long-value-that-is-no-number"})
    void givenAValueThatIsNoNumber_whenCounted_thenItIsRefusedAndStays(String value) {
        ask("SET k " + value);
        assertThat(ask("INCR k")).isEqualTo("-ERR value is not an integer or out of range\r\n");
        assertThat(ask("GET k")).isEqualTo("$" + value.length() + "\r\n" + value + "\r\n");
    }

    @ParameterizedTest
    @CsvSource({
        "9223372036854775807, INCR k",
        "9223372036854775800, INCRBY k 8",
        "-9223372036854775808, DECR k",
        "0, DECRBY k -9223372036854775808"
    })
    void givenTheLastNumber_whenCounted_thenTheOverflowIsRefused(String value, String command) {
        ask("SET k " + value);
        assertThat(ask(command)).startsWith("-ERR ").endsWith("decrement would overflow\r\n");
        assertThat(ask("GET k")).contains(value);
    }

    @Test
    void givenAStepThatIsNoNumber_whenCounted_thenItIsRefused() {
        assertThat(ask("INCRBY k x")).isEqualTo("-ERR value is not an integer or out of range\r\n");
        assertThat(ask("INCRBY k")).startsWith("-ERR wrong number of arguments");
        assertThat(ask("INCR ")).startsWith("-ERR key of 0 bytes");
        assertThat(ask("INCR " + "k".repeat(5000))).isEqualTo("-ERR key of 5000 bytes; it takes 1 to 4096\r\n");
        assertThat(ask("EXISTS k")).isEqualTo(":0\r\n");
    }

    @Test
    void givenSeveralClients_whenTheyCountAtOneTime_thenNoStepIsLost() throws Exception {
        Set<String> replies = ConcurrentHashMap.newKeySet();
        List<Thread> clients = new ArrayList<>();
        for (int i = 0; i < CLIENTS; i++) {
            clients.add(Thread.ofPlatform().start(() -> {
                try (EmbeddedConnection own = resp.connect()) {
                    for (int step = 0; step < STEPS; step++) {
                        replies.add(own.ask("INCR k\r\n"));
                    }
                }
            }));
        }
        for (Thread client : clients) {
            client.join();
        }
        assertThat(replies).hasSize(CLIENTS * STEPS);
        assertThat(ask("GET k")).endsWith("\r\n" + CLIENTS * STEPS + "\r\n");
    }

    @ParameterizedTest
    @ValueSource(strings = {"HSET k f v", "LPUSH k v", "SADD k v", "EVAL x 0", "SUBSCRIBE c", "ZADD k 1 v"})
    void givenACommandOfWhatIsNotKept_whenAsked_thenTheErrorSaysSo(String command) {
        assertThat(ask(command)).startsWith("-ERR unknown command").contains("KVCache keeps plain values");
        assertThat(ask("GETT k")).doesNotContain("plain values");
    }
}
