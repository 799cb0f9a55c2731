package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.MemoryConfig.PrefaultMode;
import io.kvcache.server.config.ServerConfig;
import java.net.Socket;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class PrefaultTest {

    private static ConfigReader.Option option(String text) {
        return new ConfigReader.Option("test", text);
    }

    @ParameterizedTest
    @CsvSource({"before-ready,BEFORE_READY", "background,BACKGROUND", "off,OFF"})
    void givenEachWayToTouchMemory_whenStarted_thenItServes(String said, PrefaultMode meant) throws Exception {
        ServerConfig config = new ConfigReader(new HostResources(8L << 30, 2), Map.of())
                .read(
                        ConfigReader.Source.NONE,
                        Map.of(
                                "listen.port",
                                option("0"),
                                "memory.host_bytes",
                                option("64MiB"),
                                "memory.prefault",
                                option(said)));
        assertThat(config.memory().prefaultMode()).isEqualTo(meant);
        try (CacheServer server = CacheServer.start(config);
                Socket socket = new Socket(
                        server.address().getAddress(), server.address().getPort())) {
            socket.setSoTimeout(60_000);
            socket.getOutputStream().write("SET k value\r\nGET k\r\n".getBytes(US_ASCII));
            String expected = "+OK\r\n$5\r\nvalue\r\n";
            assertThat(new String(socket.getInputStream().readNBytes(expected.length()), US_ASCII))
                    .isEqualTo(expected);
        }
    }
}
