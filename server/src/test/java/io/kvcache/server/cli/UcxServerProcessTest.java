package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.client.RemoteKvCache;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// `kvcache serve` with `transport.ucx`, in a process of its own that is killed in the end.
@EnabledIf(value = "io.kvcache.transport.ucx.UcxMemory#possible", disabledReason = "libucx0 is not installed")
@Timeout(300)
@Tag("slow")
final class UcxServerProcessTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(4, 1, 1024, 16, Dtype.BF16));
    private static final int BLOCKS = 5;
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(60);

    @TempDir
    private Path folder = Path.of("");

    private final Path shared = Path.of("/dev/shm", "kvcache-test-" + UUID.randomUUID());

    /// Servers of other tests may remove the killed server's folder at the same time, so what is gone is no error.
    @AfterEach
    void remove() {
        File[] left = shared.toFile().listFiles();
        for (File file : left == null ? new File[0] : left) {
            boolean _ = file.delete();
        }
        boolean _ = shared.toFile().delete();
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp", "shm"})
    void givenAServedProcess_whenReadOverUcxAndThenKilled_thenBlocksComeOneSidedAndThenAreAMiss(String transports)
            throws Exception {
        Path errors = folder.resolve("errors");
        try (ServeCommandProcess server = new ServeCommandProcess(
                errors,
                "--transport=127.0.0.1:0",
                "--set=transport.shared_memory=" + shared.getFileName(),
                "--set=transport.ucx=" + transports)) {
            Matcher place =
                    Pattern.compile("  engines at (127\\.0\\.0\\.1:\\d+), .*").matcher(server.readLine("  engines at"));
            assertThat(place.matches()).isTrue();
            try (RemoteKvCache cache = RemoteKvCache.builder("ucx:" + place.group(1) + "?tls=" + transports)
                    .requestTimeout(Duration.ofSeconds(60))
                    .connect()) {
                cache.register(SPACE);
                BlockChain chain =
                        BlockChain.of(SPACE, IntStream.range(0, 16 * BLOCKS).toArray());
                put(cache, chain);
                assertThat(verified(cache, chain)).isEqualTo(BLOCKS);
                assertThat(cache.remoteStats().fetched()).isEqualTo(BLOCKS);
                assertThat(listening(server.pid()))
                        .as("on loopback only")
                        .isNotEmpty()
                        .allMatch(UcxServerProcessTest::loopback);
                server.kill();
                long start = System.nanoTime();
                while (verified(cache, chain) > 0) {
                    assertThat(System.nanoTime() - start).isLessThan(PATIENCE_NANOS);
                }
            }
        }
        assertThat(errors).content().contains("Clients may read over UCX (" + transports + ", loopback only)");
    }

    private static void put(KvCache cache, BlockChain chain) {
        for (int index = 0; index < BLOCKS; index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
                BlockContent.of(chain.key(index)).fill(writer.segment());
                writer.seal();
            }
        }
    }

    private static int verified(KvCache cache, BlockChain chain) {
        try (BlockTable table = cache.acquire(chain)) {
            for (int index = 0; index < table.readyBlocks(); index++) {
                BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
            }
            return table.readyBlocks();
        }
    }

    /// Addresses that a process listens at, as the kernel writes them.
    private static List<String> listening(long pid) throws IOException {
        Set<String> sockets;
        try (Stream<Path> files = Files.list(Path.of("/proc", Long.toString(pid), "fd"))) {
            sockets = files.map(UcxServerProcessTest::target).collect(Collectors.toSet());
        }
        try (Stream<String> four = Files.lines(Path.of("/proc/net/tcp"));
                Stream<String> six = Files.lines(Path.of("/proc/net/tcp6"))) {
            return Stream.concat(four, six)
                    .map(line -> line.strip().split("\\s+", -1))
                    .filter(words -> words[3].equals("0A") && sockets.contains("socket:[" + words[9] + "]"))
                    .map(words -> words[1].substring(0, words[1].indexOf(':')))
                    .toList();
        }
    }

    private static String target(Path file) {
        try {
            return Files.readSymbolicLink(file).toString();
        } catch (IOException closed) {
            return "";
        }
    }

    /// 127.0.0.1, perhaps as one of version 6, or ::1.
    private static boolean loopback(String address) {
        return address.endsWith("0100007F") || address.equals("00000000000000000000000001000000");
    }
}
