package io.kvcache.bench.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class ResponderTest {

    @Test
    void givenABareResponder_whenAskedForSizes_thenEachAnswerIsTakenWhole() throws IOException, InterruptedException {
        try (Contender responder = Contender.responder()) {
            for (int bytes : new int[] {1, 65_536, 3_000_000}) {
                LoadRun load = new LoadRun(port -> new BareClient(port, bytes), 100, 2, responder.port());
                assertThat(load.run(Duration.ofMillis(50)).count()).isPositive();
            }
        }
    }
}
