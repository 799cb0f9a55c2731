package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.KeyspaceStats;
import io.kvcache.server.miss.MissLog.Reason;
import io.kvcache.server.net.EmbeddedConnection;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// The hit rate that an operator sees, for clients that ask in the ways in which LMCache's clients and others do.
final class HitRateTest {

    private static final int CHUNKS = 41;
    private static final int STORED = 35;

    private final ProtocolTestHarness port = new ProtocolTestHarness();
    private final EmbeddedConnection embeddedConnection = port.connect();
    private final EmbeddedConnection info = port.connect();

    @AfterEach
    void close() {
        embeddedConnection.close();
        info.close();
        port.close();
    }

    /// How a client asks for a chunk.
    enum Pattern {
        /// LMCache's redis:// asks for one half and reads both.
        REDIS_HALVES {
            @Override
            void ask(HitRateTest test, String chunk) {
                if (test.says("EXISTS " + chunk + "metadata", ":1")) {
                    assertThat(test.says("GET " + chunk + "metadata", "$4")).isTrue();
                    assertThat(test.says("GET " + chunk + "kv_bytes", "$5")).isTrue();
                }
            }
        },
        /// LMCache's native client.
        NATIVE {
            @Override
            void ask(HitRateTest test, String chunk) {
                if (test.says("EXISTS " + chunk, ":1")) {
                    assertThat(test.says("GET " + chunk, "$5")).isTrue();
                }
            }
        },
        LM {
            @Override
            void ask(HitRateTest test, String chunk) {
                byte[] told = test.embeddedConnection.send(test.lm(3, chunk)).bytes();
                if (told[0] == (byte) 200) {
                    assertThat(test.embeddedConnection.send(test.lm(2, chunk)).bytes())
                            .hasSize(36 + 5);
                }
            }
        },
        HEAD {
            @Override
            void ask(HitRateTest test, String chunk) {
                String path = " /v1/objects/" + chunk + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
                if (test.embeddedConnection.ask("HEAD" + path).startsWith("HTTP/1.1 200")) {
                    assertThat(test.embeddedConnection.ask("GET" + path)).startsWith("HTTP/1.1 200");
                }
            }
        },
        GET_ALONE {
            @Override
            void ask(HitRateTest test, String chunk) {
                test.says("GET " + chunk, "$5");
            }
        },
        EXISTS_ALONE {
            @Override
            void ask(HitRateTest test, String chunk) {
                test.says("EXISTS " + chunk, ":1");
            }
        };

        abstract void ask(HitRateTest test, String chunk);
    }

    private boolean says(String command, String answer) {
        return embeddedConnection.ask(command + "\r\n").startsWith(answer);
    }

    private String lm(int command, String key) {
        return (char) command + "\0".repeat(35) + key + " ".repeat(150 - key.length());
    }

    private static String chunk(int i) {
        return "model@1@0@1c7e09ab" + i;
    }

    private void store(String key, String value) {
        assertThat(info.ask("SET " + key + " " + value + "\r\n")).isEqualTo("+OK\r\n");
    }

    @ParameterizedTest
    @EnumSource(Pattern.class)
    void givenChunksOfWhichSomeAreStored_whenAskedFor_thenTheHitRateIsThatOfTheChunks(Pattern pattern) {
        for (int i = 0; i < STORED; i++) {
            store(chunk(i), "value");
            store(chunk(i) + "metadata", "meta");
            store(chunk(i) + "kv_bytes", "bytes");
        }
        for (int round = 1; round <= 3; round++) {
            for (int i = 0; i < CHUNKS; i++) {
                pattern.ask(this, chunk(i));
            }
            KeyspaceStats.Reads reads = port.test().keyspace().stats().reads();
            assertThat(reads.hits()).isEqualTo((long) round * STORED);
            assertThat(reads.of(Reason.NEVER_SEEN)).isEqualTo((long) round * (CHUNKS - STORED));
            assertThat(reads.misses()).isEqualTo(reads.of(Reason.NEVER_SEEN));
        }
        assertThat(info.ask("INFO stats\r\n")).as("85.4 %").contains("keyspace_hits:105\r\n", "keyspace_misses:18\r\n");
    }
}
