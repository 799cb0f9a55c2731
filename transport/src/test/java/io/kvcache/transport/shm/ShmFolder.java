package io.kvcache.transport.shm;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/// A folder for the files of one store: in memory where there is such a file system, and gone afterwards.
public record ShmFolder(Path path) implements AutoCloseable {

    private static final Path MEMORY = Path.of("/dev/shm");

    /// Makes one that nobody has.
    public static ShmFolder make() {
        try {
            Path parent = Files.isDirectory(MEMORY) ? MEMORY : Path.of(System.getProperty("java.io.tmpdir"));
            return new ShmFolder(Files.createTempDirectory(parent, "kvcache-test-"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
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
