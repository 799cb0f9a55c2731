package io.kvcache.gpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/// Builds the stand-in by g++ when its sources are newer than it.
///
/// Without g++ the tests that need it are skipped with a word, but fail in continuous integration.
final class FakeCudaBuild {

    private static final Path SOURCES = Path.of("src", "test", "native");
    private static final Path KERNELS = Path.of("src", "main", "cuda");
    private static final Path FOLDER = Path.of("target", "stand-in");
    private static final Path LIBRARY = FOLDER.resolve("libcuda.so.1");
    private static final int MAX_SECONDS = 600;
    private static final List<String> COMPILER = List.of(
            "g++",
            "-std=c++17",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fPIC",
            "-pthread",
            "-fvisibility=hidden",
            "-I",
            SOURCES.toString());

    /// Has the kernels in it, which find out where something lies that a device would not read there.
    private static final String WITH_KERNELS = "modules.cpp";

    private FakeCudaBuild() {}

    /// The library, where the loader takes it.
    static synchronized Path library() {
        try {
            Files.createDirectories(FOLDER);
            try (FileChannel lock = FileChannel.open(
                            FOLDER.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                    FileLock _ = lock.lock()) { // tests run in several JVMs
                if (!Files.exists(LIBRARY) || Math.max(newest(SOURCES), newest(KERNELS)) > modified(LIBRARY)) {
                    build();
                }
            }
            return LIBRARY.toAbsolutePath();
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    private static void build() throws IOException {
        Path fresh = FOLDER.resolve("fresh.so");
        Path kernels = FOLDER.resolve("kernels.o");
        List<String> command = new ArrayList<>(COMPILER);
        command.addAll(List.of("-fsanitize=alignment", "-c", "-o", kernels.toString()));
        command.add(SOURCES.resolve(WITH_KERNELS).toString());
        run(command);
        command = new ArrayList<>(COMPILER);
        command.addAll(List.of("-shared", "-Wl,-soname,libcuda.so.1", "-o", fresh.toString(), kernels.toString()));
        try (Stream<Path> sources = Files.list(SOURCES)) {
            sources.map(Path::toString)
                    .filter(name -> name.endsWith(".cpp") && !name.endsWith(WITH_KERNELS))
                    .sorted()
                    .forEach(command::add);
        }
        run(command);
        Files.move(fresh, LIBRARY, StandardCopyOption.REPLACE_EXISTING);
    }

    private static void run(List<String> command) throws IOException {
        Path log = FOLDER.resolve("build.log");
        try {
            Process compiler = new ProcessBuilder(command)
                    .redirectErrorStream(true)
                    .redirectOutput(log.toFile())
                    .start();
            boolean ended = compiler.waitFor(MAX_SECONDS, TimeUnit.SECONDS);
            compiler.destroyForcibly();
            assertThat(ended && compiler.exitValue() == 0)
                    .as("g++ builds the stand-in: %s", Files.readString(log))
                    .isTrue();
        } catch (IOException missing) {
            assertThat(System.getenv("CI"))
                    .as("continuous integration needs g++: %s", missing.getMessage())
                    .isNull();
            assumeThat(false)
                    .as("skipped, as there is no g++ to build the stand-in for libcuda with")
                    .isTrue();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while the stand-in was built", stopped);
        }
    }

    private static long newest(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.mapToLong(FakeCudaBuild::modified).max().orElse(0);
        }
    }

    private static long modified(Path file) {
        return file.toFile().lastModified();
    }
}
