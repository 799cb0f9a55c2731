package io.kvcache.bench.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.bench.server.PipelineBenchmark.PipelinedClient;
import java.io.IOException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;

@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Tag("slow")
class RespConnectionTest {

    private static final int KEYS = 32;

    private ServerProcess server;

    @BeforeAll
    void start() throws IOException, InterruptedException {
        server = ServerProcess.startCurrent(128 << 20);
    }

    @AfterAll
    void stop() {
        server.close();
    }

    @Test
    void givenValuesOfManySizes_whenSetAndGot_thenEachReplyIsReadWhole() throws IOException {
        try (ValueClient client = new ValueClient(server.port(), 3 << 20, false)) {
            for (int bytes : new int[] {0, 1, 64, 1 << 20, 3 << 20}) {
                client.setValue(7, bytes);
                assertThat(client.getValue(7)).isTrue();
            }
            assertThat(client.getValue(1_000_000)).isFalse();
            client.flushAll();
            assertThat(client.getValue(7)).isFalse();
        }
    }

    @Test
    void givenSixteenRequestsAtOnce_whenRepeated_thenReadsNoMoreThanTheirReplies() throws IOException {
        try (ValueClient client = new ValueClient(server.port(), 64, true)) {
            for (int key = 0; key < KEYS; key++) {
                client.roundTrip(key);
            }
        }
        for (PipelinedClient.SmallRequest request : PipelinedClient.SmallRequest.values()) {
            try (PipelinedClient client = new PipelinedClient(server.port(), request, KEYS)) {
                for (int key = 0; key < 4; key++) {
                    client.roundTrip(key);
                }
            }
        }
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
