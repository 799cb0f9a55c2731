package io.kvcache.bench.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;

@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Tag("slow")
class RespConnectionTest {

    private ServerProcess server;

    @BeforeAll
    void start() throws IOException, InterruptedException {
        server = ServerProcess.startCurrent(768 << 20);
    }

    @AfterAll
    void stop() {
        server.close();
    }

    @Test
    void givenValuesOfManySizes_whenSetAndGot_thenEachReplyIsReadWhole() throws IOException {
        try (RespConnection client = new RespConnection(server.port(), 3 << 20)) {
            for (int bytes : new int[] {0, 1, 64, 1 << 20, 3 << 20}) {
                client.set("key", bytes);
                client.get("key", bytes);
                assertThat(client.find("key")).isTrue();
            }
            assertThat(client.find("other")).isFalse();
            client.flush();
            assertThat(client.find("key")).isFalse();
        }
    }

    @Test
    void givenEachLoad_whenRun_thenItsRequestsAreAnswered() throws IOException, InterruptedException {
        List<RespLoad> loads = new ArrayList<>(RespLoad.piped());
        loads.addAll(RespLoad.ofValues(4 << 20, List.of(1, 2)));
        for (RespLoad load : loads) {
            load.fill(server.port());
            assertThat(load.run(server.port(), Duration.ofMillis(20)))
                    .as(load.name())
                    .isPositive();
        }
        assertThat(loads)
                .extracting(RespLoad::name)
                .containsExactly(
                        "pipe-exists", "pipe-get", "pipe-set", "get-4m-1c", "get-4m-2c", "set-4m-1c", "set-4m-2c");
    }

    @Test
    void givenAnotherReply_whenExpected_thenTheErrorNamesBoth() throws IOException {
        try (RespConnection connection = new RespConnection(server.port(), 64)) {
            connection.send(RespConnection.command("PING"));
            assertThatThrownBy(() -> connection.expect("+PUNG\r\n"))
                    .isInstanceOf(IOException.class)
                    .hasMessage("expected +PUNG, got +PONG");
        }
    }
}
