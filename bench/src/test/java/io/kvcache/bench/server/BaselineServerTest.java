package io.kvcache.bench.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.server.BaselineServer.BaselineClient;
import java.io.IOException;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class BaselineServerTest {

    @Test
    void givenABareResponder_whenAskedForSizes_thenEachAnswerIsTakenWhole() throws IOException, InterruptedException {
        try (ServerProcess responder = ServerProcess.startBaseline()) {
            for (int bytes : new int[] {1, 65_536, 3_000_000}) {
                LoadGenerator load =
                        new LoadGenerator(port -> new BaselineClient(port, bytes), 100, 2, responder.port());
                assertThat(load.run(Duration.ofMillis(50)).count()).isPositive();
            }
        }
    }
}
