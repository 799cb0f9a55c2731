package io.kvcache.server;

import static io.kvcache.server.keyspace.TestKeyspace.content;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.KeyspaceStats;
import io.kvcache.server.lm.LmTestClient;
import io.kvcache.server.net.EmbeddedConnection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// What LMCache's native client needs of a server: after a yes, a fetch within two seconds finds the value, however
/// much
/// is written meanwhile. More is asked for than can be kept.
@Tag("slow")
final class EvictionContractTest {

    /// With what is kept behind a value, in one slot of 1 MiB: 64 fit.
    private static final int BYTES = (1 << 20) - 100;
    private static final int ROUNDS = 3;
    private static final int ASKED = 60;

    private final ProtocolTestHarness port = new ProtocolTestHarness();

    @AfterEach
    void close() {
        port.close();
    }

    /// A client's words for "is it here" and "give it to me".
    enum Client {
        RESP {
            @Override
            boolean exists(EmbeddedConnection embeddedConnection, String key) {
                return embeddedConnection.ask("EXISTS " + key + "\r\n").equals(":1\r\n");
            }

            @Override
            boolean gets(EmbeddedConnection embeddedConnection, String key) {
                return embeddedConnection.ask("GET " + key + "\r\n").startsWith("$" + BYTES + "\r\n");
            }
        },
        LM {
            @Override
            boolean exists(EmbeddedConnection embeddedConnection, String key) {
                return code(embeddedConnection.send(LM_CLIENT.ask(LmTestClient.EXIST, key))) == 200;
            }

            @Override
            boolean gets(EmbeddedConnection embeddedConnection, String key) {
                return code(embeddedConnection.send(LM_CLIENT.ask(LmTestClient.GET, key))) == 200;
            }

            private int code(EmbeddedConnection embeddedConnection) {
                byte[] reply = embeddedConnection.bytes();
                return (reply[0] & 0xff) | (reply[1] & 0xff) << 8;
            }
        },
        HTTP {
            @Override
            boolean exists(EmbeddedConnection embeddedConnection, String key) {
                return ask(embeddedConnection, "HEAD", key).startsWith("HTTP/1.1 200");
            }

            @Override
            boolean gets(EmbeddedConnection embeddedConnection, String key) {
                return ask(embeddedConnection, "GET", key).startsWith("HTTP/1.1 200");
            }

            private String ask(EmbeddedConnection embeddedConnection, String verb, String key) {
                return embeddedConnection.ask(verb + " /v1/objects/" + key + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
            }
        };

        private static final LmTestClient LM_CLIENT = new LmTestClient();

        abstract boolean exists(EmbeddedConnection embeddedConnection, String key);

        abstract boolean gets(EmbeddedConnection embeddedConnection, String key);
    }

    private void overflow() {
        for (int i = 0; i < 100; i++) {
            port.test().put("other" + i, content(i, BYTES));
        }
        port.test().keyspace().tick();
    }

    private void pass(Duration time) {
        port.test().time().advance(time);
        port.test().keyspace().tick();
    }

    @ParameterizedTest
    @EnumSource
    void givenAYes_whenFarMoreIsWrittenThanFits_thenAGetWithinTwoSecondsFindsIt(Client client) {
        overflow();
        for (int round = 0; round < ROUNDS; round++) {
            List<String> told = new ArrayList<>();
            for (int i = 0; i < ASKED; i++) {
                String key = "asked-" + round + "-" + i;
                port.test().put(key, content(i, BYTES));
                port.test().keyspace().tick(); // as a server does each tenth of a second
                try (EmbeddedConnection embeddedConnection = port.connect()) {
                    if (client.exists(embeddedConnection, key)) {
                        told.add(key);
                    }
                }
            }
            assertThat(told).as("yes").hasSizeBetween(20, ASKED - 1);
            pass(Duration.ofMillis(1900));
            overflow();
            for (String key : told) {
                try (EmbeddedConnection embeddedConnection = port.connect()) {
                    assertThat(client.gets(embeddedConnection, key)).as(key).isTrue();
                }
            }
            pass(Duration.ofSeconds(2));
        }
        KeyspaceStats.ExistsPinCounts promises = port.test().keyspace().stats().promises();
        assertThat(promises.broken()).isZero();
        assertThat(promises.declined()).isPositive();
    }
}
