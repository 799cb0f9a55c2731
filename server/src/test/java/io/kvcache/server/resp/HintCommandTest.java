package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.EmbeddedConnection;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// KV.HINT over a store of 64 values.
final class HintCommandTest {

    /// Begins keys of LMCache's form, of which alone there are halves.
    private static final String CHUNK = "model@1@0@00000000deadbeef@";

    private static final String VALUE = "x".repeat((1 << 20) - 200);

    /// With its trailer below 16 KiB, the size of a slot: 4,096 fit, and a quarter of them may be pinned.
    private static final String SMALL = "x".repeat((16 << 10) - 200);

    private final EmbeddedRespServer resp = new EmbeddedRespServer();

    @AfterEach
    void close() {
        resp.close();
    }

    private String ask(String line) {
        return resp.ask(line.split(" ", -1));
    }

    private void put(int from, int to) {
        for (int i = from; i < to; i++) {
            assertThat(resp.ask("SET", "k" + i, VALUE, "EX", "100000")).isEqualTo("+OK\r\n");
        }
    }

    private String hint(String what, int from, int to) {
        StringBuilder line = new StringBuilder("KV.HINT " + what);
        IntStream.range(from, to).forEach(i -> line.append(" k").append(i));
        return ask(line.toString());
    }

    private long here(int from, int to) {
        return IntStream.range(from, to)
                .filter(i -> resp.test().keyspace().info(("k" + i).getBytes(StandardCharsets.US_ASCII)) != null)
                .count();
    }

    @Test
    void givenExpectedKeys_whenAScanComes_thenTheySurviveIt() {
        put(0, 60);
        assertThat(hint("EXPECT", 0, 20)).isEqualTo(":20\r\n");
        put(100, 140);
        assertThat(here(0, 20)).isEqualTo(20);
        assertThat(here(20, 60)).isLessThan(20);
    }

    @Test
    void givenForgottenAndExpiredKeys_whenRoomIsNeeded_thenTheyGoFirst() {
        put(0, 64);
        assertThat(hint("FORGET", 50, 54)).isEqualTo(":4\r\n");
        assertThat(hint("EXPIRE 0", 54, 60)).isEqualTo(":6\r\n");
        put(100, 110);
        resp.test().keyspace().tick();
        assertThat(here(50, 60)).isZero();
        assertThat(here(0, 50)).isEqualTo(50);
    }

    private void putSmall(int from, int to) {
        for (int i = from; i < to; i++) {
            assertThat(resp.ask("SET", "k" + i, SMALL, "EX", "100000")).isEqualTo("+OK\r\n");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"EXPECT", "RETURN 1000", "FORGET", "PIN 1000", "UNPIN"})
    void givenManyKeys_whenHinted_thenOthersOfTheLoopHaveTheirTurnsBetween(String what) {
        putSmall(0, 1_100);
        assertThat(hint("PIN 10000", 0, 1_100)).isEqualTo(":1024\r\n");
        List<String> repliesOfTurn = new ArrayList<>();
        EmbeddedConnection connection = resp.embeddedConnection();
        connection.channel().eventLoop().execute(() -> repliesOfTurn.add(connection.text()));
        assertThat(hint(what, 0, 1_000)).isEqualTo(":1000\r\n");
        assertThat(repliesOfTurn).containsExactly("");
    }

    @Test
    void givenPinnedKeys_whenAScanComes_thenAQuarterOfMemoryStaysAndNoMore() {
        put(0, 60);
        assertThat(hint("PIN 60000", 0, 60)).isEqualTo(":16\r\n");
        put(100, 300);
        assertThat(here(0, 60)).isEqualTo(16);
        assertThat(hint("UNPIN", 0, 60)).isEqualTo(":16\r\n");
        put(300, 500);
        assertThat(here(0, 60)).isZero();
    }

    @Test
    void givenLmcachesHalves_whenOneIsHinted_thenTheOtherGoesWithIt() {
        resp.ask("SET", CHUNK + "metadata", "m", "EX", "1000");
        resp.ask("SET", CHUNK + "kv_bytes", VALUE, "EX", "1000");
        assertThat(ask("KV.HINT PIN 60000 " + CHUNK + "metadata")).isEqualTo(":1\r\n");
        assertThat(resp.test().cache().hintStats().pins()).isEqualTo(2);
        put(0, 200);
        assertThat(ask("STRLEN " + CHUNK + "kv_bytes")).isEqualTo(":" + VALUE.length() + "\r\n");
        assertThat(ask("STRLEN " + CHUNK + "metadata")).isEqualTo(":1\r\n");
    }

    @Test
    void givenAPinnedValue_whenReplacedOrDeleted_thenItIsReplacedAndGone() {
        put(0, 1);
        hint("PIN 60000", 0, 1);
        assertThat(ask("SET k0 other EX 100")).isEqualTo("+OK\r\n");
        assertThat(ask("GET k0")).isEqualTo("$5\r\nother\r\n");
        assertThat(hint("PIN 60000", 0, 1)).isEqualTo(":1\r\n");
        assertThat(ask("DEL k0")).isEqualTo(":1\r\n");
        assertThat(ask("GET k0")).isEqualTo("$-1\r\n");
        assertThat(resp.test().cache().hintStats().pins()).isZero();
    }

    @Test
    void givenKeysThatAreNotHere_whenHinted_thenTheyArePassedOver() {
        put(0, 2);
        assertThat(ask("KV.HINT EXPECT k0 absent k1")).isEqualTo(":2\r\n");
        assertThat(ask("KV.HINT PIN 1000 absent")).isEqualTo(":0\r\n");
        assertThat(ask("KV.HINT RETURN 5000 k0")).isEqualTo(":1\r\n");
    }

    @Test
    void givenASessionThatGoesOn_whenRoomIsNeeded_thenWhatItLeftBehindGoesFirst() {
        put(0, 64);
        assertThat(hint("SESSION chat 7 1 more", 0, 20)).isEqualTo(":20\r\n");
        assertThat(hint("SESSION chat 7 2 more", 0, 14)).isEqualTo(":14\r\n");
        assertThat(resp.test().cache().hintStats().sessions()).isEqualTo(1);
        assertThat(resp.test().cache().hintStats().blocksLeft()).isEqualTo(6);
        put(100, 106);
        assertThat(here(14, 20)).isZero();
        assertThat(here(0, 14)).isEqualTo(14);
        assertThat(here(20, 64)).isEqualTo(44);
        assertThat(hint("SESSION chat 7 3 last", 0, 10)).isEqualTo(":10\r\n");
        put(106, 110);
        assertThat(here(10, 14)).isZero();
        assertThat(resp.test().cache().hintStats().sessions()).isZero();
    }

    @Test
    void givenLmcachesHalves_whenASessionLeavesOneBehind_thenBothGo() {
        for (String chunk : new String[] {CHUNK + "a", CHUNK + "b"}) {
            resp.ask("SET", chunk + "metadata", "m", "EX", "1000");
            resp.ask("SET", chunk + "kv_bytes", VALUE, "EX", "1000");
        }
        assertThat(ask("KV.HINT SESSION agent 9 1 more %1$sakv_bytes %1$sbkv_bytes".formatted(CHUNK)))
                .isEqualTo(":2\r\n");
        assertThat(ask("KV.HINT SESSION agent 9 2 more %sakv_bytes".formatted(CHUNK)))
                .isEqualTo(":1\r\n");
        assertThat(resp.test().cache().hintStats().blocksLeft()).isEqualTo(2);
    }

    @Test
    void givenManyHalves_whenASessionGoesOn_thenTheLastAreKeptWithTheirOtherHalves() {
        for (int chunk = 1022; chunk < 1024; chunk++) {
            resp.ask("SET", CHUNK + chunk + "metadata", "m");
            resp.ask("SET", CHUNK + chunk + "kv_bytes", "b");
        }
        StringBuilder line = new StringBuilder("KV.HINT SESSION agent 9 1 more");
        IntStream.range(0, 1024)
                .forEach(i -> line.append(' ').append(CHUNK).append(i).append("kv_bytes"));
        assertThat(ask(line.toString())).isEqualTo(":1024\r\n");
        assertThat(ask("KV.HINT SESSION agent 9 2 more other")).isEqualTo(":1\r\n");
        assertThat(resp.test().cache().hintStats().blocksLeft()).isEqualTo(4);
    }

    @Test
    void givenBothHalvesNamed_whenASessionLeavesThem_thenEachIsLeftOnce() {
        resp.ask("SET", CHUNK + "metadata", "m");
        resp.ask("SET", CHUNK + "kv_bytes", "b");
        assertThat(ask("KV.HINT SESSION agent 9 1 more %1$smetadata %1$skv_bytes".formatted(CHUNK)))
                .isEqualTo(":2\r\n");
        assertThat(ask("KV.HINT SESSION agent 9 2 more other")).isEqualTo(":1\r\n");
        assertThat(resp.test().cache().hintStats().blocksLeft()).isEqualTo(2);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "KV.HINT|ERR wrong number of arguments for 'kv.hint' command",
                "KV.HINT LOVE k|ERR unknown hint 'LOVE'. KV.HINT takes EXPECT, RETURN milliseconds",
                "KV.HINT PIN 1000|ERR wrong number of arguments for 'kv.hint PIN'",
                "KV.HINT PIN soon k|ERR milliseconds is soon; it takes 1 to 31536000000",
                "KV.HINT EXPIRE +5 k|ERR milliseconds is +5; it takes 0 to 31536000000",
                "KV.HINT PIN 0 k|ERR milliseconds is 0; it takes 1 to 31536000000",
                "KV.HINT PIN -1 k|ERR milliseconds is -1; it takes 1 to 31536000000",
                "KV.HINT RETURN 31536000001 k|ERR milliseconds is 31536000001; it takes 0 to 31536000000",
                "KV.HINT WEIGH 1.5 k|ERR weight is 1.5; it takes 0 to 1",
                "KV.HINT WEIGH heavy k|ERR weight is heavy; it takes 0 to 1",
                "KV.HINT WEIGH NaN k|ERR weight is NaN; it takes 0 to 1",
                "KV.HINT LABEL agent a|ERR wrong number of arguments for 'kv.hint LABEL'. KV.HINT takes EXPECT, RETURN"
                        + " milliseconds, FORGET, PIN milliseconds, UNPIN, LABEL chat",
                "KV.HINT LABEL game first k|ERR kind is game; it takes chat, agent, batch, other",
                "KV.HINT LABEL chat soon k|ERR turn is soon; it takes first, later, last",
                "KV.HINT SESSION chat 7 1 more|ERR wrong number of arguments for 'kv.hint SESSION'. KV.HINT takes EXPECT,",
                "KV.HINT SESSION game 7 1 more k|ERR kind is game; it takes chat, agent, batch, other",
                "KV.HINT SESSION chat 0 1 more k|ERR session is 0; it takes 1 to 9223372036854775807",
                "KV.HINT SESSION chat mine 1 more k|ERR session is mine; it takes 1 to 9223372036854775807",
                "KV.HINT SESSION chat 7 0 more k|ERR turn is 0; it takes 1 to 2147483647",
                "KV.HINT SESSION chat 7 2147483648 more k|ERR turn is 2147483648; it takes 1 to 2147483647",
                "KV.HINT SESSION chat 7 1 over k|ERR stage is over; it takes more, last"
            })
    void givenAHintThatCannotBe_whenSaid_thenItIsToldWhatMay(String line, String reply) {
        assertThat(ask(line)).startsWith("-" + reply);
    }

    @Test
    void givenKeysThatCannotBe_whenHinted_thenNothingIsTaken() {
        put(0, 1);
        assertThat(resp.ask("KV.HINT", "PIN", "1000", "k0", ""))
                .isEqualTo("-ERR key of 0 bytes; it takes 1 to 4096\r\n");
        assertThat(resp.ask("KV.HINT", "PIN", "1000", "k0", "x".repeat(4097)))
                .isEqualTo("-ERR key of 4097 bytes; it takes 1 to 4096\r\n");
        assertThat(hint("PIN 1000", 0, 8193)).isEqualTo("-ERR 8193 keys; a hint takes 1 to 8192\r\n");
        assertThat(resp.test().cache().hintStats().pins()).isZero();
    }
}
