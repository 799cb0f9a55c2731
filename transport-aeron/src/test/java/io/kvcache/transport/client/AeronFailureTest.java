package io.kvcache.transport.client;

import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.aeron.AeronEndpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// [ProcessFailureTest] and [RemoteInterruptsTest] over Aeron.
@EnabledOnOs(OS.LINUX)
@Timeout(120)
final class AeronFailureTest {

    /// A connection takes more than a socket's.
    private static final Duration LONGER = Duration.ofSeconds(2);

    @TempDir
    private Path folder = Path.of("");

    private String ipc() {
        return "aeron:ipc?dir=" + folder.resolve("server");
    }

    @Test
    @Tag("slow")
    void givenAnAeronClientInTheMiddleOfPutsAndReads_whenKilled_thenAllIsBackAndNothingIsWrong() throws Exception {
        EndpointOptions options = EndpointOptions.DEFAULTS.withMaxLease(Duration.ofSeconds(3));
        try (TieredKvCache store = ProcessFailureTest.store();
                AeronEndpoint endpoint = AeronEndpoint.open(store, ipc(), options)) {
            ProcessFailureTest.killed(store, endpoint::stats, endpoint.address());
        }
    }

    @Test
    @Tag("slow")
    void givenAStoppedServer_whenAskedOverAeron_thenAnswersInTimeAndARecovery() throws Exception {
        try (TestProcess server = TestProcess.start(AeronTestProcess.class, "serve", ipc());
                RemoteKvCache cache = ProcessFailureTest.connect(server.line(), LONGER)) {
            // For longer than a driver may be silent: who serves there notices it as well when he goes on.
            ProcessFailureTest.goesOn(server, cache, ProcessFailureTest.stopped(server, cache));
        }
    }

    @Test
    @Tag("slow")
    @Timeout(300)
    void givenAeron_whenAThreadIsInterrupted_thenOthersMissNothing() throws Exception {
        try (TieredKvCache store = ProcessFailureTest.store();
                AeronEndpoint endpoint = AeronEndpoint.open(store, ipc(), EndpointOptions.DEFAULTS);
                RemoteKvCache cache = RemoteKvCache.builder(endpoint.address())
                        .requestTimeout(TestBlocks.PATIENCE)
                        .connect()) {
            RemoteInterruptsTest.interrupt(store, cache);
        }
    }
}
