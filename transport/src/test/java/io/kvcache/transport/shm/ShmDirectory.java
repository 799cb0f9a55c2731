package io.kvcache.transport.shm;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/// A folder for the files of one store: in memory where there is such a file system, and gone afterwards.
public record ShmDirectory(Path path) implements AutoCloseable {

    private static final Path MEMORY = Path.of("/dev/shm");

    /// For the stores of any test, twice over.
    private static final long ENOUGH_BYTES = 1L << 30;

    /// Makes one that nobody has.
    public static ShmDirectory make() {
        try {
            Path parent = roomy() ? MEMORY : Path.of(System.getProperty("java.io.tmpdir"));
            return new ShmDirectory(Files.createTempDirectory(parent, "kvcache-test-"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /// Containers have little of it unless they are told otherwise, and what killed processes left takes some.
    private static boolean roomy() throws IOException {
        return Files.isDirectory(MEMORY) && Files.getFileStore(MEMORY).getUsableSpace() >= ENOUGH_BYTES;
    }

    /// The names of the files in it.
    public List<String> files() throws IOException {
        try (Stream<Path> all = Files.list(path)) {
            return all.map(each -> each.getFileName().toString()).sorted().toList();
        }
    }

    @Override
    public void close() {
        try (Stream<Path> all = Files.list(path)) {
            for (Path each : all.toList()) {
                Files.deleteIfExists(each);
            }
            Files.deleteIfExists(path);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
