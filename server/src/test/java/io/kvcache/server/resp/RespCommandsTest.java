package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.Connection.CloseReason;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class RespCommandsTest {

    /// A key of LMCache's, without what makes it a half.
    private static final String CHUNK = "model@1@0@1c7e09ab55";

    private final EmbeddedRespServer resp = new EmbeddedRespServer();

    @AfterEach
    void close() {
        resp.close();
    }

    private String ask(String line) {
        return resp.ask(line.split(" ", -1));
    }

    @ParameterizedTest
    @ValueSource(strings = {"DEL", "UNLINK"})
    void givenBothHalvesOfAValue_whenDeleted_thenAsManyAreCountedAsWereNamed(String command) {
        for (String[] named :
                new String[][] {{CHUNK + "metadata"}, {CHUNK + "kv_bytes"}, {CHUNK + "metadata", CHUNK + "kv_bytes"}}) {
            resp.ask("MSET", CHUNK + "kv_bytes", "bytes", CHUNK + "metadata", "meta");
            String[] words = new String[named.length + 2];
            words[0] = command;
            System.arraycopy(named, 0, words, 1, named.length);
            words[named.length + 1] = named[0]; // once more
            assertThat(resp.ask(words)).isEqualTo(":" + named.length + "\r\n");
            assertThat(resp.ask("EXISTS", CHUNK + "metadata", CHUNK + "kv_bytes"))
                    .isEqualTo(":0\r\n");
        }
    }

    @Test
    void givenKeysOfOthersThatEndLikeHalves_whenOneIsDeleted_thenTheOtherStays() {
        resp.ask("MSET", "video:42:kv_bytes", "bytes", "video:42:metadata", "meta");
        assertThat(ask("DEL video:42:metadata")).isEqualTo(":1\r\n");
        assertThat(ask("GET video:42:kv_bytes")).isEqualTo("$5\r\nbytes\r\n");
        assertThat(ask("SET video:42:metadata new")).isEqualTo("+OK\r\n");
        assertThat(ask("DEL video:42:kv_bytes")).isEqualTo(":1\r\n");
        assertThat(ask("GET video:42:metadata")).isEqualTo("$3\r\nnew\r\n");
    }

    @ParameterizedTest
    @CsvSource({
        "NX XX, 'NX and XX, GT or LT options at the same time are not compatible'",
        "NX GT, 'NX and XX, GT or LT options at the same time are not compatible'",
        "LT NX, 'NX and XX, GT or LT options at the same time are not compatible'",
        "GT LT, GT and LT options at the same time are not compatible",
        "FOO, Unsupported option FOO"
    })
    void givenConditionsThatExcludeEachOther_whenExpired_thenTheErrorIsRedis(String words, String error) {
        ask("SET k v");
        for (String command : List.of("EXPIRE k 10 ", "PEXPIREAT k abc ", "PEXPIRE absent 10 ")) {
            assertThat(ask(command + words)).isEqualTo("-ERR " + error + "\r\n");
        }
        assertThat(ask("TTL k")).isEqualTo(":-1\r\n");
        assertThat(ask("EXPIRE k 10 XX GT")).isEqualTo(":0\r\n");
        assertThat(ask("EXPIRE k 10 NX NX")).isEqualTo(":1\r\n");
    }

    @Test
    void givenAValue_whenSetAndGot_thenRepliesAreByteForByteThoseOfRedis() {
        assertThat(ask("SET k hello")).isEqualTo("+OK\r\n");
        assertThat(ask("GET k")).isEqualTo("$5\r\nhello\r\n");
        assertThat(ask("GET absent")).isEqualTo("$-1\r\n");
        assertThat(ask("EXISTS k")).isEqualTo(":1\r\n");
        assertThat(ask("EXISTS absent")).isEqualTo(":0\r\n");
        assertThat(ask("EXISTS k k absent")).isEqualTo(":2\r\n");
        assertThat(ask("DEL k")).isEqualTo(":1\r\n");
        assertThat(ask("DEL k")).isEqualTo(":0\r\n");
    }

    @Test
    void givenAnEmptyValue_whenSet_thenItIsThereAndEmpty() {
        assertThat(resp.ask("SET", "k", "")).isEqualTo("+OK\r\n");
        assertThat(ask("GET k")).isEqualTo("$0\r\n\r\n");
        assertThat(ask("STRLEN k")).isEqualTo(":0\r\n");
        assertThat(ask("EXISTS k")).isEqualTo(":1\r\n");
    }

    @Test
    void givenBinaryKeys_whenSetAndListed_thenEveryByteIsKept() {
        String key = "a b\r\n\0\377é%@/" + "x".repeat(150);
        assertThat(resp.ask("SET", key, "v")).isEqualTo("+OK\r\n");
        assertThat(resp.ask("GET", key)).isEqualTo("$1\r\nv\r\n");
        assertThat(resp.ask("KEYS", "*")).isEqualTo("*1\r\n$" + key.length() + "\r\n" + key + "\r\n");
    }

    @Test
    void givenSetOptions_whenTheyDoNotHold_thenNothingIsStored() {
        assertThat(ask("SET k 1 XX")).isEqualTo("$-1\r\n");
        assertThat(ask("SET k 1 NX")).isEqualTo("+OK\r\n");
        assertThat(ask("SET k 2 NX")).isEqualTo("$-1\r\n");
        assertThat(ask("SET k 3 XX GET")).isEqualTo("$1\r\n1\r\n");
        assertThat(ask("GET k")).isEqualTo("$1\r\n3\r\n");
        assertThat(ask("SETNX k 4")).isEqualTo(":0\r\n");
        assertThat(ask("GETSET k 5")).isEqualTo("$1\r\n3\r\n");
        assertThat(ask("SET k 6 NX XX")).isEqualTo("-ERR syntax error\r\n");
        assertThat(ask("SET k 6 EX x KEEPTTL")).isEqualTo("-ERR syntax error\r\n");
        assertThat(ask("SET k 6 EX x XX")).isEqualTo("-ERR value is not an integer or out of range\r\n");
        assertThat(ask("SET k 6 EX")).isEqualTo("-ERR syntax error\r\n");
        assertThat(ask("SET k 6 EX 1 PX 1")).isEqualTo("-ERR syntax error\r\n");
        assertThat(ask("SET k 6 EX x")).isEqualTo("-ERR value is not an integer or out of range\r\n");
        assertThat(ask("SET k 6 EX 0")).isEqualTo("-ERR invalid expire time in 'set' command\r\n");
        assertThat(ask("SET k 6 SOON")).isEqualTo("-ERR syntax error\r\n");
        assertThat(ask("GET k")).isEqualTo("$1\r\n5\r\n");
    }

    @Test
    void givenTimesToLive_whenTimePasses_thenTheyCountDownAndEnd() {
        ask("SET k v EX 100");
        resp.test().time().advance(Duration.ofSeconds(40));
        assertThat(ask("TTL k")).isEqualTo(":60\r\n");
        assertThat(ask("PTTL k")).isEqualTo(":60000\r\n");
        assertThat(ask("SET k w KEEPTTL")).isEqualTo("+OK\r\n");
        assertThat(ask("TTL k")).isEqualTo(":60\r\n");
        assertThat(ask("PERSIST k")).isEqualTo(":1\r\n");
        assertThat(ask("TTL k")).isEqualTo(":-1\r\n");
        assertThat(ask("TTL absent")).isEqualTo(":-2\r\n");
        assertThat(ask("EXPIRE k 10")).isEqualTo(":1\r\n");
        assertThat(ask("EXPIRE k 20 NX")).isEqualTo(":0\r\n");
        assertThat(ask("EXPIRE k 20 GT")).isEqualTo(":1\r\n");
        assertThat(ask("EXPIRE absent 20")).isEqualTo(":0\r\n");
        resp.test().time().advance(Duration.ofSeconds(20));
        assertThat(ask("GET k")).isEqualTo("$-1\r\n");
        assertThat(ask("SETEX k 10 v")).isEqualTo("+OK\r\n");
        assertThat(ask("TTL k")).isEqualTo(":10\r\n");
        assertThat(ask("PSETEX k 1500 v")).isEqualTo("+OK\r\n");
        assertThat(ask("PTTL k")).isEqualTo(":1500\r\n");
        assertThat(ask("EXPIRE k -1")).isEqualTo(":1\r\n");
        assertThat(ask("EXISTS k")).isEqualTo(":0\r\n");
    }

    @ParameterizedTest
    @CsvSource({
        "0,4,01234",
        "0,-1,0123456789",
        "-3,-1,789",
        "3,3,3",
        "8,100,89",
        "-100,1,01",
        "5,3,''",
        "100,200,''",
        "-1,-5,''"
    })
    void givenARange_whenAsked_thenItIsCutAsRedisDoes(int from, int to, String expected) {
        ask("SET k 0123456789");
        assertThat(ask("GETRANGE k " + from + " " + to))
                .isEqualTo("$" + expected.length() + "\r\n" + expected + "\r\n");
        assertThat(ask("GETRANGE absent 0 1")).isEqualTo("$0\r\n\r\n");
    }

    @Test
    void givenSeveralKeys_whenSetAndGotTogether_thenOrderIsKept() {
        assertThat(ask("MSET a 1 b 2 c 3")).isEqualTo("+OK\r\n");
        assertThat(ask("MGET c x a")).isEqualTo("*3\r\n$1\r\n3\r\n$-1\r\n$1\r\n1\r\n");
        assertThat(ask("MSET a 1 b")).startsWith("-ERR wrong number of arguments for 'mset'");
        assertThat(ask("DBSIZE")).isEqualTo(":3\r\n");
        assertThat(ask("UNLINK a b x")).isEqualTo(":2\r\n");
        assertThat(ask("TOUCH a c")).isEqualTo(":1\r\n");
        assertThat(ask("TYPE c")).isEqualTo("+string\r\n");
        assertThat(ask("TYPE a")).isEqualTo("+none\r\n");
        assertThat(ask("FLUSHDB")).isEqualTo("+OK\r\n");
        assertThat(ask("DBSIZE")).isEqualTo(":0\r\n");
    }

    @Test
    void givenManyKeys_whenScanned_thenEachIsMetAndPatternsChoose() {
        for (int i = 0; i < 100; i++) {
            ask("SET key" + i + " v");
        }
        int found = 0;
        String cursor = "0";
        do {
            List<String> lines =
                    ask("SCAN " + cursor + " COUNT 7 MATCH key*").lines().toList();
            cursor = lines.get(2);
            found += Integer.parseInt(lines.get(3).substring(1));
        } while (!cursor.equals("0"));
        assertThat(found).isEqualTo(100);
        assertThat(ask("KEYS key[1-2]?")).startsWith("*20\r\n");
        assertThat(ask("SCAN x")).isEqualTo("-ERR invalid cursor\r\n");
        assertThat(ask("SCAN -1")).isEqualTo("-ERR invalid cursor\r\n");
    }

    @Test
    void givenManyKeys_whenListedAtOnce_thenOthersOfTheLoopHaveTheirTurns() {
        for (int i = 0; i < 6000; i++) {
            ask("SET key" + i + " v");
        }
        List<String> answered = new ArrayList<>();
        resp.embeddedConnection()
                .channel()
                .eventLoop()
                .execute(() -> answered.add(resp.embeddedConnection().text()));

        String keys = ask("KEYS *[0-9]*");
        String page = ask("SCAN 0 COUNT 10000 MATCH *[0-9]*");

        assertThat(answered).as("when another has its turn").containsExactly("");
        assertThat(keys).startsWith("*6000\r\n");
        assertThat(page).startsWith("*2\r\n$1\r\n0\r\n*6000\r\n");
        assertThat(ask("MULTI")).isEqualTo("+OK\r\n");
        ask("KEYS *");
        ask("DBSIZE");
        assertThat(ask("EXEC")).startsWith("*2\r\n*6000\r\n").endsWith(":6000\r\n");
        assertThat(ask("SCAN 0 MATCH " + "a".repeat(1025)))
                .isEqualTo("-ERR the pattern has 1025 bytes; it takes up to 1024\r\n");
    }

    @Test
    void givenAGreeting_whenVersionThreeIsAsked_thenRepliesAreOfThatVersion() {
        assertThat(ask("HELLO 3 AUTH default x SETNAME me"))
                .startsWith("%8\r\n$6\r\nserver\r\n$5\r\nredis\r\n")
                .contains("$5\r\nproto\r\n:3\r\n");
        assertThat(ask("GET absent")).isEqualTo("_\r\n");
        assertThat(ask("CLIENT GETNAME")).isEqualTo("$2\r\nme\r\n");
        assertThat(ask("INFO server")).startsWith("=");
        assertThat(ask("HELLO 2")).startsWith("*16\r\n");
        assertThat(ask("HELLO 4")).isEqualTo("-NOPROTO unsupported protocol version\r\n");
        assertThat(ask("HELLO 3 AUTH other x")).startsWith("-WRONGPASS");
        assertThat(ask("GET absent")).isEqualTo("$-1\r\n");
    }

    @Test
    void givenWhatClientsSayFirst_whenSaid_thenItIsUnderstood() {
        assertThat(ask("CLIENT SETINFO LIB-NAME redis-py")).isEqualTo("+OK\r\n");
        assertThat(ask("CLIENT ID")).isEqualTo(":1\r\n");
        assertThat(ask("SELECT 0")).isEqualTo("+OK\r\n");
        assertThat(ask("SELECT 1")).isEqualTo("-ERR DB index is out of range\r\n");
        assertThat(ask("PING")).isEqualTo("+PONG\r\n");
        assertThat(ask("ECHO hi")).isEqualTo("$2\r\nhi\r\n");
        assertThat(ask("CONFIG GET sav*")).isEqualTo("*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
        assertThat(ask("CONFIG GET kvcache-*")).isEqualTo("*2\r\n$14\r\nkvcache-policy\r\n$10\r\nimportance\r\n");
        assertThat(ask("CONFIG GET maxmemory-*")).endsWith("$11\r\nallkeys-lfu\r\n");
        assertThat(ask("CONFIG GET proto-max-bulk-len"))
                .endsWith("\r\n" + resp.test().keyspace().keyspaceLimits().valueBytes() + "\r\n");
        assertThat(ask("COMMAND INFO get nothing"))
                .startsWith("*2\r\n*10\r\n$3\r\nget\r\n:2\r\n")
                .endsWith("$-1\r\n");
        assertThat(ask("CLUSTER SLOTS")).startsWith("-ERR This instance has cluster support disabled");
        assertThat(ask("AUTH secret")).startsWith("-ERR AUTH <password> called without any password");
        assertThat(ask("INFO replication")).contains("role:master").doesNotContain("# Memory");
        assertThat(ask("INFO")).contains("# Server", "# Keyspace", "used_memory:", "redis_version:");
        assertThat(ask("INFO kvcache"))
                .contains("values_declined:0\r\n", "puts_declined:0\r\n", "policy_follows_lru:1\r\n");
    }

    @Test
    void givenMistakes_whenMade_thenTheConnectionGoesOn() {
        assertThat(ask("FROB a b")).isEqualTo("-ERR unknown command 'FROB', with args beginning with: 'a' 'b' \r\n");
        assertThat(ask("GET")).isEqualTo("-ERR wrong number of arguments for 'get' command\r\n");
        assertThat(ask("SET k")).isEqualTo("-ERR wrong number of arguments for 'set' command\r\n");
        assertThat(ask("SETEX k 1 v x")).isEqualTo("-ERR wrong number of arguments for 'setex' command\r\n");
        assertThat(resp.ask("SET", "", "v")).startsWith("-ERR key of 0 bytes");
        assertThat(resp.ask("SET", "k".repeat(5000), "v")).startsWith("-ERR key of 5000 bytes");
        assertThat(resp.ask("GET", "k".repeat(5000))).isEqualTo("$-1\r\n");
        assertThat(ask("PING")).isEqualTo("+PONG\r\n");
    }

    @Test
    void givenQuit_whenSaid_thenTheReplyComesAndTheConnectionEnds() {
        assertThat(ask("QUIT")).isEqualTo("+OK\r\n");
        assertThat(resp.embeddedConnection().isOpen()).isFalse();
        assertThat(resp.connectionRegistry().closedCount(CloseReason.QUIT)).isEqualTo(1);
    }

    @Test
    void givenMemoryUsage_whenAsked_thenItIsInPages() {
        ask("SET k v");
        assertThat(ask("MEMORY USAGE k")).isEqualTo(":4096\r\n");
        assertThat(ask("MEMORY USAGE absent")).isEqualTo("$-1\r\n");
    }
}
