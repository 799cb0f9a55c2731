package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.quota.ByteBudget;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class TransactionTest {

    private static final int MIB = 1 << 20;

    private final ByteBudget arguments = new ByteBudget(64 * MIB);
    private final EmbeddedRespServer resp = new EmbeddedRespServer(arguments);

    @AfterEach
    void close() {
        resp.close();
        assertThat(arguments.usedBytes()).as("heap that is still taken").isZero();
    }

    private String ask(String line) {
        return resp.ask(line.split(" ", -1));
    }

    private String askAll(String... lines) {
        StringBuilder replies = new StringBuilder();
        for (String line : lines) {
            replies.append(ask(line));
        }
        return replies.toString();
    }

    @Test
    void givenMulti_whenCommandsAreQueuedAndRun_thenRepliesAreByteForByteThoseOfRedis() {
        assertThat(ask("MULTI")).isEqualTo("+OK\r\n");
        assertThat(ask("SET k hello")).isEqualTo("+QUEUED\r\n");
        assertThat(ask("GET k")).isEqualTo("+QUEUED\r\n");
        assertThat(ask("SET k again EX 10")).isEqualTo("+QUEUED\r\n");
        assertThat(ask("GET k")).isEqualTo("+QUEUED\r\n");
        assertThat(ask("MGET k absent")).isEqualTo("+QUEUED\r\n");
        assertThat(resp.test().keyspace().stats().keys()).isZero();
        assertThat(ask("EXEC"))
                .isEqualTo("*5\r\n+OK\r\n$5\r\nhello\r\n+OK\r\n$5\r\nagain\r\n*2\r\n$5\r\nagain\r\n$-1\r\n");
        assertThat(ask("TTL k")).isEqualTo(":10\r\n");
    }

    @Test
    void givenAPipelineAsRedisPySendsIt_whenItComesInOnePiece_thenAllIsAnsweredInOrder() {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (String line : List.of("MULTI", "SET a 1", "GET a", "EXEC", "GET a")) {
            all.writeBytes(EmbeddedRespServer.frame(line.split(" ", -1)));
        }
        assertThat(resp.embeddedConnection().send(all.toByteArray()).text())
                .isEqualTo("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n$1\r\n1\r\n$1\r\n1\r\n");
    }

    @Test
    void givenNothingQueued_whenExecuted_thenTheReplyIsEmpty() {
        assertThat(askAll("MULTI", "EXEC", "PING")).isEqualTo("+OK\r\n*0\r\n+PONG\r\n");
    }

    @Test
    void givenNoMulti_whenExecutedOrDiscarded_thenThatIsSaid() {
        assertThat(ask("EXEC")).isEqualTo("-ERR EXEC without MULTI\r\n");
        assertThat(ask("DISCARD")).isEqualTo("-ERR DISCARD without MULTI\r\n");
        assertThat(askAll("MULTI", "MULTI", "EXEC")).isEqualTo("+OK\r\n-ERR MULTI calls can not be nested\r\n*0\r\n");
    }

    @Test
    void givenQueuedCommands_whenDiscardedOrReset_thenNothingOfThemIsRun() {
        assertThat(askAll("MULTI", "SET k v", "DISCARD", "GET k")).isEqualTo("+OK\r\n+QUEUED\r\n+OK\r\n$-1\r\n");
        assertThat(askAll("MULTI", "SET k v", "RESET", "GET k")).isEqualTo("+OK\r\n+QUEUED\r\n+RESET\r\n$-1\r\n");
        assertThat(ask("EXEC")).startsWith("-ERR EXEC without MULTI");
    }

    @Test
    void givenACommandThatCannotBe_whenItIsQueued_thenExecRefusesAllOfThem() {
        for (String wrong : new String[] {"LPUSH k", "GET", "SET k", "AUTH x", "HELLO 3", "SAVE"}) {
            assertThat(askAll("MULTI", "SET k v")).isEqualTo("+OK\r\n+QUEUED\r\n");
            assertThat(ask(wrong)).as(wrong).startsWith("-ERR ");
            assertThat(ask("SET other " + "v".repeat(1000))).as(wrong).startsWith("-ERR the transaction is discarded");
            assertThat(ask("GET k")).isEqualTo("+QUEUED\r\n");
            assertThat(ask("EXEC"))
                    .as(wrong)
                    .isEqualTo("-EXECABORT Transaction discarded because of previous errors.\r\n");
            assertThat(askAll("GET k", "GET other")).as(wrong).isEqualTo("$-1\r\n$-1\r\n");
        }
        assertThat(resp.protocol().errorCount()).isEqualTo(3 * 6);
    }

    @Test
    void givenACommandThatFailsWhenItRuns_whenExecuted_thenTheOthersRunAllTheSame() {
        assertThat(askAll("MULTI", "SET k v EX 0", "SET " + "k".repeat(5000) + " v", "SET l w", "SELECT 3", "EXEC"))
                .isEqualTo("+OK\r\n" + "+QUEUED\r\n".repeat(4)
                        + "*4\r\n-ERR invalid expire time in 'set' command\r\n"
                        + "-ERR key of 5000 bytes; it takes 1 to 4096\r\n+OK\r\n-ERR DB index is out of range\r\n");
        assertThat(ask("GET l")).isEqualTo("$1\r\nw\r\n");
    }

    @Test
    void givenWatch_whenAsked_thenItIsRefusedWithWhatDoesInstead() {
        assertThat(ask("WATCH k")).startsWith("-ERR WATCH is not served").contains("NX");
        assertThat(askAll("MULTI", "WATCH k", "UNWATCH", "EXEC"))
                .startsWith("+OK\r\n-ERR WATCH")
                .endsWith("+QUEUED\r\n*1\r\n+OK\r\n");
        assertThat(ask("UNWATCH")).isEqualTo("+OK\r\n");
    }

    @Test
    void givenMoreThanATransactionTakes_whenQueued_thenItIsToldTheLimitAndNothingIsKept() {
        assertThat(ask("MULTI")).isEqualTo("+OK\r\n");
        for (int i = 0; i < Transaction.MAX_COMMANDS; i++) {
            assertThat(ask("PING")).isEqualTo("+QUEUED\r\n");
        }
        assertThat(ask("PING")).isEqualTo("-ERR a transaction takes up to 65536 commands\r\n");
        assertThat(ask("EXEC")).startsWith("-EXECABORT");
        assertThat(askAll("MULTI", "PING", "EXEC")).endsWith("*1\r\n+PONG\r\n");
    }

    @Test
    void givenValuesBeyondTheLimit_whenQueued_thenTheyAreThrownAwayAndTheConnectionGoesOn() {
        resp.ask("MULTI");
        resp.embeddedConnection().send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$" + 65 * MIB + "\r\n");
        byte[] part = new byte[MIB];
        for (int i = 0; i < 65; i++) {
            resp.embeddedConnection().send(part);
        }
        assertThat(resp.embeddedConnection().ask("\r\n"))
                .startsWith("-ERR 68157440 more bytes; a transaction takes up to 67108864 bytes")
                .contains("Pipelines without MULTI");
        assertThat(ask("EXEC")).startsWith("-EXECABORT");
        assertThat(ask("PING")).isEqualTo("+PONG\r\n");
    }

    @Test
    void givenOthersTakeTheHeap_whenAValueIsQueued_thenItIsRefusedAndWhatWasTakenIsGivenBack() {
        try (EmbeddedConnection other = resp.connect()) {
            other.send("*1\r\n$5\r\nMULTI\r\n");
            other.send(EmbeddedRespServer.frame("SET", "o", "x".repeat(31 * MIB)));
            assertThat(other.text()).isEqualTo("+OK\r\n+QUEUED\r\n");
            resp.ask("MULTI");
            assertThat(resp.ask("SET", "k", "x".repeat(2 * MIB)))
                    .startsWith("-ERR transactions take all of the 33554432 bytes of heap");
            assertThat(ask("EXEC")).startsWith("-EXECABORT");
            String[] large = new String[40];
            Arrays.fill(large, "x".repeat(60_000));
            large[0] = "DEL";
            assertThat(resp.ask(large)).as("what others ask meanwhile").startsWith(":0");
        }
        assertThat(askAll("MULTI", "PING", "EXEC")).endsWith("*1\r\n+PONG\r\n");
        assertThat(arguments.usedBytes()).isZero();
    }

    @Test
    void givenCommandsOfManySmallWords_whenQueued_thenTheArraysOfTheWordsAreCountedToo() {
        String[] words = new String[10_001];
        Arrays.fill(words, "k");
        words[0] = "EXISTS";
        resp.ask("MULTI");
        for (int i = 0; i < 10; i++) {
            assertThat(resp.ask(words)).isEqualTo("+QUEUED\r\n");
        }
        assertThat(arguments.usedBytes()).isGreaterThan(10 * 10_000 * 32L);
        assertThat(ask("DISCARD")).isEqualTo("+OK\r\n");
    }

    @Test
    void givenTransactionsThatAreLeftOpen_whenTheyAreSmall_thenTheSharedLimitSeesThemAllTheSame() {
        resp.ask("MULTI");
        assertThat(resp.ask("SET", "k", "x".repeat(60_000))).isEqualTo("+QUEUED\r\n");
        assertThat(arguments.usedBytes()).isGreaterThan(50_000);
        assertThat(ask("DISCARD")).isEqualTo("+OK\r\n");
    }

    @Test
    void givenAValueLargerThanTheHeapForAll_whenItIsQueuedFirst_thenItIsRefused() {
        resp.ask("MULTI");
        assertThat(resp.ask("SET", "k", "x".repeat(33 * MIB)))
                .startsWith("-ERR 34603008 more bytes; what waits for EXEC takes up to 33554432 bytes");
        assertThat(ask("EXEC")).startsWith("-EXECABORT");
    }

    @Test
    void givenALongTransaction_whenExecuted_thenOthersOfItsLoopHaveTheirTurnBeforeItsEnd() {
        String[] words = new String[1001];
        Arrays.fill(words, "k");
        words[0] = "EXISTS";
        resp.ask("MULTI");
        for (int i = 0; i < 20; i++) {
            resp.ask(words);
        }
        StringBuilder replies = new StringBuilder();
        resp.embeddedConnection()
                .channel()
                .eventLoop()
                .execute(() -> replies.append(resp.embeddedConnection().text()));
        String rest = resp.embeddedConnection().ask("*1\r\n$4\r\nEXEC\r\n");
        assertThat(replies).as("when another had its turn").startsWith("*20\r\n:0\r\n");
        assertThat(rest).as("what came after that").startsWith(":0\r\n");
        assertThat(replies + rest).isEqualTo("*20\r\n" + ":0\r\n".repeat(20));
        assertThat(ask("PING")).isEqualTo("+PONG\r\n");
    }

    @Test
    void givenAnOpenTransaction_whenOthersWriteTheSameKey_thenNobodyWaits() {
        askAll("MULTI", "SET k queued");
        try (EmbeddedConnection other = resp.connect()) {
            assertThat(other.ask("SET k other\r\n")).isEqualTo("+OK\r\n");
            assertThat(ask("EXEC")).isEqualTo("*1\r\n+OK\r\n");
            assertThat(other.ask("GET k\r\n")).isEqualTo("$6\r\nqueued\r\n");
        }
    }

    @Test
    void givenAnotherWriterOfTheKey_whenExecuted_thenItReadsItsOwnValue() {
        try (EmbeddedConnection other = resp.connect()) {
            other.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nslo");
            assertThat(askAll("MULTI", "SET k quick", "GET k", "EXEC"))
                    .isEqualTo("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n$5\r\nquick\r\n");
            assertThat(other.ask("ws\r\n")).isEqualTo("+OK\r\n");
            assertThat(resp.embeddedConnection().ask("GET k\r\n")).isEqualTo("$5\r\nslows\r\n");
        }
    }

    @Test
    void givenLargeValues_whenExecuted_thenEveryByteIsThere() {
        byte[] value = new byte[3 * MIB];
        new Random(7).nextBytes(value);
        resp.ask("MULTI");
        resp.embeddedConnection()
                .send(EmbeddedRespServer.frame(bytes("SET"), bytes("large"), value))
                .text();
        for (int i = 0; i < 20; i++) {
            resp.ask("GET", "large");
        }
        byte[] reply =
                resp.embeddedConnection().send(EmbeddedRespServer.frame("EXEC")).bytes();
        byte[] head = bytes("*21\r\n+OK\r\n");
        byte[] bulk = bytes("$" + value.length + "\r\n");
        assertThat(reply).startsWith(head).hasSize(head.length + 20 * (bulk.length + value.length + 2));
        int last = reply.length - 2 - value.length;
        assertThat(Arrays.copyOfRange(reply, last, last + value.length)).isEqualTo(value);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }
}
