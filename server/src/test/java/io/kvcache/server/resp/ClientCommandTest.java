package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.EmbeddedConnection;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// The commands by which clients see each other, and close each other.
final class ClientCommandTest {

    /// Those that redis-py takes for numbers, and fails without.
    private static final List<String> NUMBERS = List.of(
            "id",
            "age",
            "idle",
            "db",
            "sub",
            "psub",
            "multi",
            "qbuf",
            "qbuf-free",
            "obl",
            "argv-mem",
            "oll",
            "omem",
            "tot-mem");

    private final EmbeddedRespServer resp = new EmbeddedRespServer();
    private final EmbeddedConnection other = resp.connect();

    @AfterEach
    void close() {
        other.close();
        resp.close();
    }

    private String ask(String line) {
        return resp.ask(line.split(" "));
    }

    private List<String> listed(String line) {
        List<String> lines = ask(line).lines().toList();
        assertThat(lines.getFirst()).startsWith("$");
        return lines.stream().filter(each -> each.startsWith("id=")).toList();
    }

    @Test
    void givenAMachineThatSpeaksArabic_whenListed_thenItsDigitsAreNotSent() {
        Locale own = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag("ar-EG"));
        try {
            assertThat(String.format("%d", 12)).isNotEqualTo("12"); // else nothing is seen
            assertThat(ask("CLIENT LIST")).isASCII();
            assertThat(ask("CLIENT INFO")).isASCII();
            assertThat(ask("INFO")).isASCII();
        } finally {
            Locale.setDefault(own);
        }
    }

    @Test
    void givenClients_whenListed_thenEachHasALineOfWhatProgramsLookFor() {
        ask("HELLO 2 SETNAME me");
        ask("CLIENT SETINFO LIB-NAME jedis");
        ask("CLIENT SETINFO lib-ver 1.2");
        other.ask("PING\r\n");
        resp.test().time().advance(Duration.ofSeconds(5));
        List<String> lines = listed("CLIENT LIST");
        assertThat(lines).hasSize(2);
        assertThat(lines.get(0))
                .startsWith("id=1 addr=")
                .contains(" name=me age=5 idle=0 ")
                .endsWith(" cmd=client user=default redir=-1 resp=2 lib-name=jedis lib-ver=1.2 protocol=resp");
        assertThat(lines.get(1))
                .startsWith("id=2 addr=")
                .contains(" name= age=5 idle=5 ")
                .contains(" cmd=ping ");
        assertThat(listed("CLIENT INFO")).containsExactly(lines.getFirst());
        for (String line : lines) {
            List<String> names = Arrays.stream(line.split(" "))
                    .map(pair -> pair.substring(0, pair.indexOf('=')))
                    .toList();
            assertThat(names).doesNotHaveDuplicates().containsAll(NUMBERS);
        }
    }

    @Test
    void givenFilters_whenListed_thenTheyChoose() {
        other.ask("PING\r\n");
        assertThat(listed("CLIENT LIST ID 2")).singleElement().asString().startsWith("id=2 ");
        assertThat(listed("CLIENT LIST ID 99 2 1")).hasSize(2);
        assertThat(ask("CLIENT LIST ID 99")).isEqualTo("$0\r\n\r\n");
        assertThat(listed("CLIENT LIST TYPE normal")).hasSize(2);
        assertThat(listed("CLIENT LIST TYPE pubsub")).isEmpty();
        assertThat(ask("CLIENT LIST TYPE odd")).isEqualTo("-ERR Unknown client type 'odd'\r\n");
        assertThat(ask("CLIENT LIST ID x")).isEqualTo("-ERR Invalid client ID\r\n");
        assertThat(ask("CLIENT LIST ID")).isEqualTo("-ERR syntax error\r\n");
        assertThat(ask("CLIENT LIST NAME me")).isEqualTo("-ERR syntax error\r\n");
    }

    @Test
    void givenAnotherClient_whenKilled_thenItsConnectionEnds() {
        other.ask("PING\r\n");
        assertThat(ask("CLIENT KILL ID 2 MAXAGE 3600")).isEqualTo(":0\r\n");
        assertThat(ask("CLIENT KILL ID 2 USER nobody")).isEqualTo(":0\r\n");
        assertThat(ask("CLIENT KILL 1.2.3.4:5")).isEqualTo("-ERR No such client\r\n");
        assertThat(ask("CLIENT KILL ID 0")).isEqualTo("-ERR client-id should be greater than 0\r\n");
        assertThat(ask("CLIENT KILL ID 2 SKIPME")).isEqualTo("-ERR syntax error\r\n");
        assertThat(ask("CLIENT KILL")).startsWith("-ERR wrong number of arguments");
        assertThat(other.isOpen()).isTrue();
        assertThat(ask("CLIENT KILL TYPE normal USER default")).isEqualTo(":1\r\n");
        assertThat(other.isOpen()).isFalse();
        assertThat(ask("CLIENT KILL ID 2")).isEqualTo(":0\r\n");
        assertThat(resp.connectionRegistry().closedCount(CloseReason.KILLED)).isEqualTo(1);
    }

    @Test
    void givenAClientThatKillsItself_whenItMeansTo_thenItHasItsReplyFirst() {
        assertThat(ask("CLIENT KILL ID 1")).isEqualTo(":0\r\n");
        assertThat(ask("CLIENT KILL ID 1 SKIPME no")).isEqualTo(":1\r\n");
        assertThat(resp.embeddedConnection().isOpen()).isFalse();
        assertThat(resp.connectionRegistry().closedCount(CloseReason.KILLED)).isEqualTo(1);
    }

    @Test
    void givenWhatAClientSaysOfItself_whenItIsNoWord_thenItIsRefused() {
        assertThat(ask("CLIENT GETNAME")).isEqualTo("$-1\r\n");
        assertThat(resp.ask("CLIENT", "SETNAME", "a b")).startsWith("-ERR Client names cannot contain spaces");
        assertThat(resp.ask("CLIENT", "SETINFO", "LIB-NAME", "a b")).startsWith("-ERR");
        assertThat(ask("CLIENT SETINFO COLOUR red")).isEqualTo("-ERR Unrecognized option 'COLOUR'\r\n");
        assertThat(ask("CLIENT NO-EVICT on")).isEqualTo("+OK\r\n");
        assertThat(ask("CLIENT NO-TOUCH OFF")).isEqualTo("+OK\r\n");
        assertThat(ask("CLIENT NO-EVICT maybe")).isEqualTo("-ERR syntax error\r\n");
        assertThat(ask("CLIENT FROB")).startsWith("-ERR unknown subcommand 'FROB'. CLIENT takes ID,");
        ask("CLIENT SETNAME me");
        assertThat(ask("RESET")).isEqualTo("+RESET\r\n");
        assertThat(listed("CLIENT INFO")).singleElement().asString().contains(" name= ");
    }
}
