package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.transport.endpoint.EndpointConnections.EndpointThreads;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
final class EndpointThreadsTest {

    /// One that is known already and does not run yet cannot be joined.
    @Test
    void givenThreadsThatAreBeingStarted_whenAwaited_thenTheyAreWaitedFor() throws Exception {
        EndpointThreads threads = new EndpointThreads();
        AtomicInteger done = new AtomicInteger();
        int count = 2000;
        Thread starter = Thread.ofPlatform().start(() -> {
            for (int i = 0; i < count; i++) {
                threads.start("work", done::incrementAndGet);
            }
        });
        while (starter.isAlive()) {
            threads.await();
        }
        starter.join();
        EndpointFixture.await("all have ended", threads::await);
        assertThat(done.get()).isEqualTo(count);
    }
}
