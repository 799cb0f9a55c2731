package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.PinnedValue;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class GetAndModifyCommandsTest {

    private final EmbeddedRespServer resp = new EmbeddedRespServer();

    @AfterEach
    void close() {
        resp.close();
    }

    private String ask(String line) {
        return resp.ask(line.split(" ", -1));
    }

    @Test
    void givenAValue_whenTaken_thenItIsAnsweredOnce() {
        ask("SET k hello");
        assertThat(ask("GETDEL k")).isEqualTo("$5\r\nhello\r\n");
        assertThat(ask("GETDEL k")).isEqualTo("$-1\r\n");
        assertThat(ask("GETDEL absent")).isEqualTo("$-1\r\n");
        assertThat(resp.test().keyspace().stats().writes().deleted()).isEqualTo(1);
    }

    @Test
    void givenAValue_whenReadWithAnExpiry_thenItHasThat() {
        ask("SET k v");
        assertThat(ask("GETEX k EX 100")).isEqualTo("$1\r\nv\r\n");
        assertThat(ask("TTL k")).isEqualTo(":100\r\n");
        assertThat(ask("GETEX k")).isEqualTo("$1\r\nv\r\n");
        assertThat(ask("TTL k")).isEqualTo(":100\r\n");
        assertThat(ask("GETEX k PX 5000")).isEqualTo("$1\r\nv\r\n");
        assertThat(ask("PTTL k")).isEqualTo(":5000\r\n");
        assertThat(ask("GETEX k PERSIST")).isEqualTo("$1\r\nv\r\n");
        assertThat(ask("TTL k")).isEqualTo(":-1\r\n");
        assertThat(ask("GETEX absent EX 10")).isEqualTo("$-1\r\n");
        ask("GETEX k PX 20");
        resp.test().time().advance(Duration.ofMillis(30));
        assertThat(ask("GET k")).isEqualTo("$-1\r\n");
    }

    @Test
    void givenAMomentThatHasPassed_whenReadWithIt_thenTheValueIsAnsweredTheLastTime() {
        ask("SET k v");
        assertThat(ask("GETEX k EXAT 1")).isEqualTo("$1\r\nv\r\n");
        assertThat(ask("EXISTS k")).isEqualTo(":0\r\n");
    }

    @Test
    void givenOptionsThatCannotBe_whenAsked_thenTheyAreRefusedAndNothingChanges() {
        ask("SET k v");
        assertThat(ask("GETEX k EX")).isEqualTo("-ERR syntax error\r\n");
        assertThat(ask("GETEX k EX 1 PERSIST")).isEqualTo("-ERR syntax error\r\n");
        assertThat(ask("GETEX k SOON")).isEqualTo("-ERR syntax error\r\n");
        assertThat(ask("GETEX k EX 0")).isEqualTo("-ERR invalid expire time in 'getex' command\r\n");
        assertThat(ask("GETEX k EX x")).startsWith("-ERR value is not an integer");
        assertThat(ask("TTL k")).isEqualTo(":-1\r\n");
    }

    @Test
    void givenAValueWithASuccessor_whenTheOlderOneIsHeld_thenItsHolderCannotChangeTheKey() {
        Keyspace keyspace = resp.test().keyspace();
        byte[] key = "k".getBytes(StandardCharsets.US_ASCII);
        ask("SET k older");
        try (PinnedValue older = Objects.requireNonNull(keyspace.get(key))) {
            ask("SET k newer");
            assertThat(keyspace.delete(key, older)).isFalse();
            assertThat(keyspace.expireAt(key, 1, older)).isFalse();
        }
        assertThat(ask("GET k")).isEqualTo("$5\r\nnewer\r\n");
        try (PinnedValue newer = Objects.requireNonNull(keyspace.get(key))) {
            assertThat(keyspace.delete(key, newer)).isTrue();
            assertThat(keyspace.delete(key, newer)).isFalse();
        }
        assertThat(ask("GET k")).isEqualTo("$-1\r\n");
    }

    @Test
    void givenAClient_whenItAsksForTimeRoleAndItself_thenItIsTold() {
        long millis = resp.test().keyspace().nowMillis();
        String seconds = Long.toString(millis / 1000);
        String micros = Long.toString(millis % 1000 * 1000);
        assertThat(ask("TIME"))
                .isEqualTo("*2\r\n$" + seconds.length() + "\r\n" + seconds + "\r\n$" + micros.length() + "\r\n" + micros
                        + "\r\n");
        assertThat(ask("ROLE")).isEqualTo("*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
        assertThat(ask("ACL WHOAMI")).isEqualTo("$7\r\ndefault\r\n");
        assertThat(ask("ACL LIST")).startsWith("-ERR unknown subcommand 'LIST'");
        assertThat(ask("SAVE")).startsWith("-ERR no disk is configured");
        assertThat(ask("LASTSAVE")).isEqualTo(":0\r\n");
    }
}
