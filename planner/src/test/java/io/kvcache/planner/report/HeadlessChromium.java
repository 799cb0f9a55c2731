package io.kvcache.planner.report;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/// A browser without a screen, when this machine has one.
///
/// @param program to be run
/// @param folder for what it writes
record HeadlessChromium(Path program, Path folder) {

    /// Where it keeps of itself what it does, in a folder of its own each time: one that another run was killed over
    /// may be locked. Not in a folder that a test removes: helpers of it may end after it.
    private static final Path PROFILES = Path.of("target", "chromium");

    private static final List<String> NAMES =
            List.of("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome");
    private static final int MAX_SECONDS = 300;

    /// What it wrote: the page as it stood at last, and messages of its own and of scripts.
    record PageVisit(int exitCode, String page, String messages) {}

    static Optional<Path> find() {
        return Stream.of(System.getenv("PATH").split(":"))
                .flatMap(folder -> NAMES.stream().map(Path.of(folder)::resolve))
                .filter(Files::isExecutable)
                .findFirst();
    }

    /// Opens a file, lets its scripts end and hands back what the page became.
    PageVisit open(Path file) {
        return run(file, List.of("--dump-dom", "--virtual-time-budget=20000"));
    }

    /// A picture of the page.
    PageVisit paint(Path file, Path picture, List<String> more) {
        List<String> options = new ArrayList<>(List.of("--screenshot=" + picture, "--virtual-time-budget=20000"));
        options.addAll(more);
        return run(file, options);
    }

    private static Path profile() {
        try {
            return Files.createTempDirectory(Files.createDirectories(PROFILES).toAbsolutePath(), "profile");
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    private PageVisit run(Path file, List<String> options) {
        Path profile = profile();
        List<String> command = new ArrayList<>(List.of(
                program.toString(),
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--hide-scrollbars",
                "--enable-logging=stderr",
                "--user-data-dir=" + profile));
        command.addAll(options);
        command.add(file.toUri().toString());
        try {
            Path page = Files.createTempFile(folder, "page", ".html");
            Path messages = Files.createTempFile(folder, "messages", ".txt");
            Process process = new ProcessBuilder(command)
                    .redirectInput(
                            ProcessBuilder.Redirect.from(Path.of("/dev/null").toFile()))
                    .redirectOutput(page.toFile())
                    .redirectError(messages.toFile())
                    .start();
            try {
                if (!process.waitFor(MAX_SECONDS, TimeUnit.SECONDS)) {
                    throw new AssertionError(command + " did not end in " + MAX_SECONDS + " s");
                }
            } finally {
                process.descendants().forEach(ProcessHandle::destroyForcibly);
                process.destroyForcibly();
            }
            return new PageVisit(process.exitValue(), Files.readString(page), Files.readString(messages));
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(stopped);
        }
    }
}
