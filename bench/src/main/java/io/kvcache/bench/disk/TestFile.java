package io.kvcache.bench.disk;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// A file that trials go to, in a folder of its own, all of it written once.
///
/// **Ownership.** Whoever made it closes it; it is removed then, or when the JVM ends without that.
///
/// @param folder its own
/// @param bytes of the file
record TestFile(Path folder, long bytes) implements AutoCloseable {

    /// What is left to others.
    private static final long MIN_FREE_BYTES = 1L << 30;

    /// Whether the folder has room for a file and some more.
    static boolean hasRoom(Path folder, long bytes) throws IOException {
        return Files.getFileStore(folder).getUsableSpace() >= bytes + MIN_FREE_BYTES;
    }

    static boolean isInMemory(Path folder) throws IOException {
        return Files.getFileStore(folder).type().equals("tmpfs");
    }

    private static TestFile empty(Path folder, long bytes) throws IOException {
        Path own = Files.createTempDirectory(folder, "kvcache-bench-");
        TestFile file = new TestFile(own, bytes);
        own.toFile().deleteOnExit(); // Last, as they go in reverse order.
        file.path().toFile().deleteOnExit();
        return file;
    }

    /// @param mover writes all of it, as what was never written need not be read from a disk
    static TestFile create(Path folder, long bytes, DeviceIoRunner mover) throws IOException {
        TestFile file = empty(folder, bytes);
        try {
            mover.run(file.workload(bytes, AccessPattern.REGION_WRITE, 4 << 20));
        } catch (IOException | RuntimeException failure) {
            file.close();
            throw failure;
        }
        return file;
    }

    private Path path() {
        return folder.resolve("file");
    }

    IoWorkload workload(long totalBytes, AccessPattern pattern, int pieceBytes) {
        return new IoWorkload(path(), bytes, totalBytes, pattern, pieceBytes, DiskBenchFixture.DEPTH);
    }

    @Override
    public void close() throws IOException {
        Files.deleteIfExists(path());
        Files.deleteIfExists(folder);
    }
}
