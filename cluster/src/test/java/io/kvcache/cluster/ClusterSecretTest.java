package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The file of a secret.
final class ClusterSecretTest {

    @TempDir
    Path folder;

    private static String proof(ClusterSecret secret) {
        return HexFormat.of().formatHex(secret.proof("test", List.of(new byte[] {1})));
    }

    private Path write(String text, String mode) throws IOException {
        Path file = Files.writeString(folder.resolve("cluster.secret"), text);
        return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(mode));
    }

    @Test
    void givenNoFile_whenManyOpenItAtOnce_thenAllHaveTheSameSecret() throws Exception {
        int servers = 16;
        for (int round = 0; round < 20; round++) {
            Path file = folder.resolve("home-" + round).resolve(".kvcache/cluster.secret");
            CyclicBarrier together = new CyclicBarrier(servers);
            Callable<String> open = () -> {
                together.await();
                return proof(ClusterSecret.open(file));
            };
            List<String> proofs = new ArrayList<>();
            try (ExecutorService threads = Executors.newFixedThreadPool(servers)) {
                for (Future<String> each : threads.invokeAll(
                        Stream.generate(() -> open).limit(servers).toList())) {
                    proofs.add(each.get());
                }
            }

            assertThat(proofs.stream().distinct()).hasSize(1);
            try (Stream<Path> left = Files.list(file.getParent())) {
                assertThat(left).containsExactly(file);
            }
            assertThat(Files.getPosixFilePermissions(file)).isEqualTo(PosixFilePermissions.fromString("rw-------"));
            assertThat(Files.getPosixFilePermissions(file.getParent()))
                    .isEqualTo(PosixFilePermissions.fromString("rwx------"));
        }
    }

    @Test
    void givenTwoFiles_whenOpened_thenTheirProofsDiffer() throws IOException {
        ClusterSecret one = ClusterSecret.open(folder.resolve("one"));
        ClusterSecret other = ClusterSecret.open(folder.resolve("other"));

        assertThat(proof(one)).isNotEqualTo(proof(other)).isEqualTo(proof(ClusterSecret.open(one.file())));
        assertThat(one.proof("a", List.of(new byte[2], new byte[1])))
                .isNotEqualTo(one.proof("a", List.of(new byte[1], new byte[2])))
                .isNotEqualTo(one.proof("b", List.of(new byte[2], new byte[1])));
    }

    @Test
    void givenAFileThatOthersMayRead_whenOpened_thenTheErrorSaysWhatToDo() throws IOException {
        Path file = write("0123456789abcdef0123456789abcdef", "rw-r-----");

        for (ThrowingOpen open : List.<ThrowingOpen>of(ClusterSecret::open, ClusterSecret::check)) {
            assertThatThrownBy(() -> open.run(file))
                    .isInstanceOf(IOException.class)
                    .hasMessage(file + " has mode rw-r-----, so other users may know the secret; allowed: rw------- or"
                            + " less. Delete it, and start all servers again");
        }
    }

    @FunctionalInterface
    private interface ThrowingOpen {
        void run(Path file) throws IOException;
    }

    @Test
    void givenAFileOfAnotherUser_whenOpened_thenItIsRefused() throws IOException {
        Path file = write("0123456789abcdef0123456789abcdef", "rw-------");
        assumeTrue(Integer.valueOf(0).equals(Files.getAttribute(file, "unix:uid")), "needs root, to give a file away");
        Files.setAttribute(file, "unix:uid", 65_534);

        assertThatThrownBy(() -> ClusterSecret.open(file))
                .isInstanceOf(IOException.class)
                .hasMessage(file + " belongs to user 65534, and the server runs as user 0; allowed: a file of its own");
    }

    @Test
    void givenAShortFileALinkOrAFolder_whenOpened_thenItIsRefused() throws IOException {
        Path file = write("0123", "rw-------");
        Path link = Files.createSymbolicLink(folder.resolve("link"), file);

        assertThatThrownBy(() -> ClusterSecret.open(file))
                .hasMessageStartingWith(file + " has 4 bytes; allowed: 32 to");
        assertThatThrownBy(() -> ClusterSecret.open(link)).hasMessageStartingWith(link + " is no file of up to");
        assertThatThrownBy(() -> ClusterSecret.open(folder)).hasMessageStartingWith(folder + " is no file of up to");
    }

    @Test
    void givenAHomeThatCannotBeWritten_whenOpened_thenTheErrorNamesIt() throws IOException {
        Path file = write("no folder", "rw-------").resolve(".kvcache/cluster.secret");

        ClusterSecret.check(folder.resolve("none"));
        assertThatThrownBy(() -> ClusterSecret.open(file))
                .isInstanceOf(IOException.class)
                .hasMessageStartingWith(file + " cannot be made: ")
                .hasMessageContaining("allowed: a home directory (");
    }
}
