package io.kvcache.transport.client;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.LocalKvCache;
import io.kvcache.core.contract.TestJvm;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A client in a JVM without Aeron's jars, which kvcache-transport does not bring.
@Timeout(300)
final class WithoutAeronTest {

    @Test
    void givenNoAeron_whenConnected_thenBlocksComeAndOnlyAeronIsRefused() throws Exception {
        String classPath = Stream.of(System.getProperty("java.class.path").split(File.pathSeparator, -1))
                .filter(each -> !each.contains("aeron-") && !each.contains("agrona-"))
                .collect(Collectors.joining(File.pathSeparator));
        try (LocalKvCache store = TieredKvCache.builder()
                        .hostBytes(128 << 20)
                        .prefaultInBackground(false)
                        .build();
                TcpEndpoint endpoint = LoopbackServers.serve(store)) {
            List<String> command =
                    new ArrayList<>(List.of(TestJvm.program(), "--enable-native-access=ALL-UNNAMED", "-cp", classPath));
            command.addAll(TestJvm.FLAGS);
            command.addAll(List.of(
                    Client.class.getName(), "127.0.0.1:" + endpoint.address().getPort()));
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            String said = new String(process.getInputStream().readAllBytes(), UTF_8);

            assertThat(process.waitFor()).as(said).isZero();
            assertThat(said)
                    .contains("2 blocks", "aeron:ipc", "io.aeron:aeron-driver")
                    .doesNotContain("NoClassDefFoundError");
        }
    }

    /// The client.
    static final class Client {

        private Client() {}

        /// @param arguments the server's address
        @SuppressWarnings("SystemOut") // that is how a child speaks
        public static void main(String[] arguments) {
            try (RemoteKvCache cache = RemoteKvCache.connect(arguments[0])) {
                cache.register(TestBlocks.SPACE);
                var chain = TestBlocks.chain(1, 2);
                if (TestBlocks.put(cache, chain, 0) && TestBlocks.put(cache, chain, 1)) {
                    System.out.println(cache.match(chain).blocks() + " blocks");
                }
            }
            try {
                RemoteKvCache.connect("aeron:ipc?dir=/tmp/kvcache-none").close();
            } catch (IllegalStateException refused) {
                System.out.println(refused.getMessage());
            }
        }
    }
}
