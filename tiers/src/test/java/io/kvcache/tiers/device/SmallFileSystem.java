package io.kvcache.tiers.device;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.opentest4j.TestAbortedException;

/// A file system in memory that is soon full.
record SmallFileSystem(Path folder) implements AutoCloseable {

    /// Mounts one, which takes root.
    ///
    /// @throws TestAbortedException where that is not allowed
    static SmallFileSystem mount(Path folder, long bytes) throws IOException {
        Files.createDirectory(folder);
        try {
            if (run("mount", "-t", "tmpfs", "-o", "size=" + bytes, "tmpfs", folder.toString()) == 0) {
                return new SmallFileSystem(folder);
            }
        } catch (IOException missing) {
            throw new TestAbortedException("there is no program that mounts", missing);
        }
        throw new TestAbortedException("cannot mount a file system here");
    }

    /// Takes all the space that is left.
    void fill() throws IOException {
        try (OutputStream file = Files.newOutputStream(folder.resolve("filler"))) {
            byte[] page = new byte[4096];
            while (folder.toFile().getUsableSpace() > 0) {
                file.write(page);
            }
        }
    }

    /// Takes the folder out at once. The kernel may let go of a file some time after it was closed, above all of
    /// one that a ring of io_uring had, and the rest of it ends then.
    @Override
    public void close() throws IOException {
        if (run("umount", "-l", folder.toString()) != 0) {
            throw new IOException("cannot unmount " + folder);
        }
    }

    private static int run(String... command) throws IOException {
        return new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start()
                .onExit()
                .join()
                .exitValue();
    }
}
