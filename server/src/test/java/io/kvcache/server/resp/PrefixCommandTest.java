package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.TestReads;
import io.kvcache.server.miss.MissLog.Reason;
import io.kvcache.server.net.EmbeddedConnection;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// KV.PREFIX over a store of 64 values.
final class PrefixCommandTest {

    private static final String VALUE = "x".repeat((1 << 20) - 200);

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

    private void putHalves(String chunk) {
        assertThat(ask("SET " + chunk + "metadata m EX 1000")).isEqualTo("+OK\r\n");
        assertThat(resp.ask("SET", chunk + "kv_bytes", VALUE, "EX", "1000")).isEqualTo("+OK\r\n");
    }

    private String prefix(long millis, int from, int to) {
        StringBuilder line = new StringBuilder("KV.PREFIX " + millis);
        IntStream.range(from, to).forEach(i -> line.append(" k").append(i));
        return ask(line.toString());
    }

    private long here(int from, int to) {
        return IntStream.range(from, to)
                .filter(i -> resp.test().keyspace().info(("k" + i).getBytes(StandardCharsets.US_ASCII)) != null)
                .count();
    }

    private long pins() {
        return resp.test().cache().hintStats().pins();
    }

    @Test
    void givenAGap_whenCounted_thenKeysBehindItAreNeitherCountedNorPinned() {
        put(0, 3);
        put(4, 6);
        assertThat(prefix(60_000, 0, 6)).isEqualTo(":3\r\n");
        assertThat(pins()).isEqualTo(3);
        assertThat(prefix(60_000, 3, 6)).isEqualTo(":0\r\n");
        assertThat(pins()).isEqualTo(3);
    }

    private void putMany(int count) {
        for (int i = 0; i < count; i++) {
            assertThat(resp.ask("SET", "k" + i, "v")).isEqualTo("+OK\r\n");
        }
    }

    @Test
    void givenManyKeys_whenCounted_thenOthersOfTheLoopHaveTheirTurnsBetween() {
        putMany(2_000);
        List<String> repliesOfTurn = new ArrayList<>();
        EmbeddedConnection connection = resp.embeddedConnection();
        connection.channel().eventLoop().execute(() -> repliesOfTurn.add(connection.text()));
        assertThat(prefix(0, 0, 2_000)).isEqualTo(":2000\r\n");
        assertThat(repliesOfTurn).containsExactly("");
        assertThat(prefix(60_000, 0, 2_001)).isEqualTo(":2000\r\n");
        assertThat(prefix(0, 1, 1_025)).isEqualTo(":1024\r\n");
    }

    @Test
    void givenManyKeysInATransaction_whenExecuted_thenRepliesComeInOrder() {
        putMany(1_500);
        assertThat(ask("MULTI")).isEqualTo("+OK\r\n");
        assertThat(prefix(0, 0, 1_600)).isEqualTo("+QUEUED\r\n");
        assertThat(ask("ECHO hi")).isEqualTo("+QUEUED\r\n");
        assertThat(prefix(0, 0, 1_400)).isEqualTo("+QUEUED\r\n");
        assertThat(ask("EXEC")).isEqualTo("*3\r\n:1500\r\n$2\r\nhi\r\n:1400\r\n");
    }

    @Test
    void givenAnExpiredKey_whenCounted_thenItEndsThePrefix() {
        put(0, 3);
        assertThat(resp.ask("SET", "k1", VALUE, "PX", "10")).isEqualTo("+OK\r\n");
        assertThat(prefix(0, 0, 3)).isEqualTo(":3\r\n");
        resp.test().time().advance(Duration.ofMillis(10));
        assertThat(prefix(0, 0, 3)).isEqualTo(":1\r\n");
    }

    @Test
    void givenFoundKeys_whenAScanComes_thenTheyStayUntilUnpinned() {
        put(0, 10);
        assertThat(prefix(60_000, 0, 10)).isEqualTo(":10\r\n");
        put(100, 300);
        assertThat(here(0, 10)).isEqualTo(10);
        assertThat(ask("KV.HINT UNPIN k0 k1 k2 k3 k4 k5 k6 k7 k8 k9")).isEqualTo(":10\r\n");
        put(300, 500);
        assertThat(here(0, 10)).isZero();
    }

    @Test
    void givenMoreThanMayBePinned_whenCounted_thenAllCountAndTheFirstArePinned() {
        put(0, 60);
        assertThat(prefix(60_000, 0, 60)).isEqualTo(":60\r\n");
        assertThat(pins()).isEqualTo(16);
        put(100, 300);
        assertThat(here(0, 16)).isEqualTo(16);
        assertThat(here(16, 60)).isZero();
    }

    @Test
    void givenAStoreThatEvicts_whenNoMoreCanBePromised_thenAllThatIsHereCounts() {
        put(0, 200);
        resp.test().keyspace().tick();
        long kept = here(150, 200);
        assertThat(kept).isEqualTo(50);
        assertThat(prefix(0, 150, 200)).isEqualTo(":50\r\n");
        assertThat(resp.test().keyspace().stats().promises().heldBytes()).isZero();
    }

    @Test
    void givenZeroMilliseconds_whenCounted_thenNothingIsPinnedAndEarlierPinsStay() {
        put(0, 60);
        assertThat(prefix(0, 0, 60)).isEqualTo(":60\r\n");
        assertThat(pins()).isZero();
        assertThat(prefix(60_000, 0, 5)).isEqualTo(":5\r\n");
        assertThat(prefix(0, 0, 5)).isEqualTo(":5\r\n");
        assertThat(pins()).isEqualTo(5);
    }

    @Test
    void givenLmcachesHalves_whenOneIsNamed_thenBothArePinned() {
        putHalves("m@1@1c7e09aa");
        putHalves("m@1@1c7e09ab");
        assertThat(ask("KV.PREFIX 60000 m@1@1c7e09aametadata m@1@1c7e09abkv_bytes m@1@1c7e09acmetadata"))
                .isEqualTo(":2\r\n");
        assertThat(pins()).isEqualTo(4);
        put(0, 200);
        for (String chunk : new String[] {"m@1@1c7e09aa", "m@1@1c7e09ab"}) {
            assertThat(ask("STRLEN " + chunk + "kv_bytes")).isEqualTo(":" + VALUE.length() + "\r\n");
            assertThat(ask("STRLEN " + chunk + "metadata")).isEqualTo(":1\r\n");
        }
    }

    @Test
    void givenHalfOfAChunk_whenEitherHalfIsNamed_thenItDoesNotCount() {
        ask("SET m@1@1c7e09aametadata m");
        ask("SET m@1@1c7e09abkv_bytes b");
        assertThat(ask("KV.PREFIX 1000 m@1@1c7e09aametadata")).isEqualTo(":0\r\n");
        assertThat(ask("KV.PREFIX 1000 m@1@1c7e09aakv_bytes")).isEqualTo(":0\r\n");
        assertThat(ask("KV.PREFIX 1000 m@1@1c7e09abmetadata")).isEqualTo(":0\r\n");
        assertThat(ask("KV.PREFIX 1000 m@1@1c7e09abkv_bytes")).isEqualTo(":0\r\n");
        assertThat(pins()).isZero();
    }

    @Test
    void givenOneHalfThatExpired_whenTheOtherIsNamed_thenItDoesNotCount() {
        putHalves("m@1@1c7e09aa");
        assertThat(ask("PEXPIRE m@1@1c7e09aametadata 10")).isEqualTo(":1\r\n");
        resp.test().time().advance(Duration.ofMillis(10));
        assertThat(ask("KV.PREFIX 1000 m@1@1c7e09aakv_bytes")).isEqualTo(":0\r\n");
    }

    @Test
    void givenBothHalves_whenTheirCommonPartIsNamed_thenNothingIsFound() {
        putHalves("m@1@1c7e09aa");
        assertThat(ask("KV.PREFIX 1000 m@1@1c7e09aa")).isEqualTo(":0\r\n");
        assertThat(ask("KV.HINT PIN 1000 m@1@1c7e09aa")).isEqualTo(":0\r\n");
    }

    @Test
    void givenFoundAndAbsentKeys_whenCountedAndRead_thenEachIsOneHitOrMiss() {
        put(0, 2);
        prefix(1000, 0, 5);
        ask("GET k0");
        ask("GET k1");
        assertThat(resp.test().keyspace().stats().reads()).isEqualTo(TestReads.of(2, Map.of(Reason.NEVER_SEEN, 1L)));
    }

    @Test
    void givenATransaction_whenItRuns_thenThePrefixIsCountedThen() {
        ask("MULTI");
        assertThat(ask("SET k0 v")).isEqualTo("+QUEUED\r\n");
        assertThat(ask("KV.PREFIX 1000 k0 k1")).isEqualTo("+QUEUED\r\n");
        assertThat(ask("EXEC")).isEqualTo("*2\r\n+OK\r\n:1\r\n");
        assertThat(pins()).isEqualTo(1);
    }

    @Test
    void givenCommandInfo_whenAsked_thenItTellsWhereTheKeysAre() {
        assertThat(ask("COMMAND INFO kv.prefix"))
                .isEqualTo("*1\r\n*10\r\n$9\r\nkv.prefix\r\n:-3\r\n*1\r\n+fast\r\n:2\r\n:-1\r\n:1\r\n"
                        + "*0\r\n".repeat(4));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "KV.PREFIX|ERR wrong number of arguments for 'kv.prefix' command",
                "KV.PREFIX 1000|ERR wrong number of arguments for 'kv.prefix' command",
                "KV.PREFIX soon k|ERR milliseconds is soon; it takes 0 to 3600000",
                "KV.PREFIX 1.5 k|ERR milliseconds is 1.5; it takes 0 to 3600000",
                "KV.PREFIX -1 k|ERR milliseconds is -1; it takes 0 to 3600000",
                "KV.PREFIX 3600001 k|ERR milliseconds is 3600001; it takes 0 to 3600000"
            })
    void givenAPrefixThatCannotBe_whenCounted_thenTheErrorNamesWhatMay(String line, String reply) {
        assertThat(ask(line)).isEqualTo("-" + reply + "\r\n");
    }

    @Test
    void givenKeysThatCannotBe_whenCounted_thenNothingIsPinned() {
        put(0, 1);
        assertThat(resp.ask("KV.PREFIX", "1000", "k0", "")).isEqualTo("-ERR key of 0 bytes; it takes 1 to 4096\r\n");
        assertThat(resp.ask("KV.PREFIX", "1000", "k0", "x".repeat(4097)))
                .isEqualTo("-ERR key of 4097 bytes; it takes 1 to 4096\r\n");
        assertThat(prefix(1000, 0, 8193)).isEqualTo("-ERR 8193 keys; a prefix takes 1 to 8192\r\n");
        assertThat(pins()).isZero();
        assertThat(prefix(3_600_000, 0, 8192)).isEqualTo(":1\r\n");
        assertThat(resp.ask("KV.PREFIX", "1000", "k0", "x".repeat(4096))).isEqualTo(":1\r\n");
    }
}
