package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import io.kvcache.server.keyspace.TestKeyspace;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("slow")
final class RecoverySummaryTest {

    private final Logger logger = Logger.getLogger("io.kvcache.server.ServedStore");
    private final Lines lines = new Lines();

    @TempDir
    private Path folder = Path.of("");

    private static final class Lines extends Handler {
        private final List<String> all = new CopyOnWriteArrayList<>();

        @Override
        public void publish(LogRecord event) {
            all.add(event.getMessage());
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    }

    @BeforeEach
    void listen() {
        logger.addHandler(lines);
    }

    @AfterEach
    void leave() {
        logger.removeHandler(lines);
    }

    @Test
    void givenValuesOnDisk_whenTheServerStartsAgain_thenOneLineSaysHowManyWereFound() throws Exception {
        try (DiskTestServer server = new DiskTestServer(folder)) {
            server.fill();
            waitForLines(1);
        }
        try (DiskTestServer _ = new DiskTestServer(folder)) {
            waitForLines(2);
        }
        List<String> said = new ArrayList<>(lines.all);
        assertThat(said).hasSize(2);
        assertThat(said.get(0)).startsWith("Recovery from disk finished: 0 blocks and values found, ");
        assertThat(said.get(1))
                .startsWith("Recovery from disk finished: 120 blocks and values found, ")
                .contains(" bytes are on disk now. Left out: 0 replaced or deleted later, 0 without");
    }

    private void waitForLines(int count) {
        while (lines.all.size() < count) {
            Pause.briefly();
        }
    }

    @Test
    void givenNoDisk_whenAllIsKnown_thenNothingIsSaid() {
        try (TestKeyspace test = TestKeyspace.small()) {
            ServedStore.logRecovery(test.cache(), 1);
        }
        assertThat(lines.all).isEmpty();
    }
}
