package io.kvcache.planner.store;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/// The directory of a disk tier that a run makes for itself.
public final class ScratchDirectory {

    private ScratchDirectory() {}

    /// A run begins with nothing, and touches nothing of others.
    ///
    /// @throws IOException when the directory is there and has something in it
    public static void requireEmpty(Path directory) throws IOException {
        if (Files.isDirectory(directory)) {
            try (Stream<Path> content = Files.list(directory)) {
                if (content.findAny().isPresent()) {
                    throw new IOException(directory + " is not empty: name a directory that is, or is not there yet");
                }
            }
        }
    }

    /// Removes a tier and its directory.
    public static void deleteTier(Path directory) throws IOException {
        Files.deleteIfExists(directory.resolve("tier"));
        Files.deleteIfExists(directory.resolve("lock"));
        Files.deleteIfExists(directory);
    }
}
