package io.kvcache.bench.figure;

import io.kvcache.bench.ChildProcess;
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.jar.Attributes;
import java.util.jar.JarFile;
import java.util.jar.Manifest;

/// A build of KVCache that can be run: this one, another checkout's, or one jar.
///
/// @param name for tables and messages
/// @param classPath all jars of the command line, with the path separator between them
/// @param mainClass of the command line
public record RunnableBuild(String name, String classPath, String mainClass) {

    private static final String BENCH_MAIN = "io.kvcache.bench.cli.Kvcache";
    private static final String SERVER_MAIN = "io.kvcache.server.cli.Kvcache";

    /// The second is where Maven leaves it, the last where older builds are.
    private static final List<String> BUILD_DIRECTORIES = List.of(".kvcache/run/bench", "bench/target", ".kvcache/run");

    /// The build that this code comes from.
    public static RunnableBuild running() {
        return new RunnableBuild("this build", System.getProperty("java.class.path"), BENCH_MAIN);
    }

    /// The server as it ships, where the launcher has it beside the jar of this code; else the build that this
    /// code comes from.
    public static RunnableBuild shippedServer() throws IOException {
        Path first = Path.of(running().classPath().split(File.pathSeparator, 2)[0]);
        Path folder = first.toAbsolutePath().resolveSibling("../server").normalize();
        List<String> jars = jars(folder, "kvcache-server-*.jar");
        // As the launcher writes it: what was rehearsed fits no other class path.
        return jars.size() == 1 && Files.isDirectory(folder.resolve("lib"))
                ? new RunnableBuild(
                        "KVCache", jars.getFirst() + File.pathSeparator + folder.resolve("lib") + "/*", SERVER_MAIN)
                : running();
    }

    /// The build in a checkout that was built, or in one jar, which has the server alone.
    ///
    /// @throws IOException when nothing that can run is there
    public static RunnableBuild locate(Path place) throws IOException {
        if (Files.isRegularFile(place)) {
            return new RunnableBuild(place.toString(), place.toAbsolutePath().toString(), mainClass(place));
        }
        for (String inside : BUILD_DIRECTORIES) {
            Path folder = place.resolve(inside);
            List<String> jars = jars(folder, "kvcache-bench-*.jar");
            List<String> libraries = jars(folder.resolve("lib"), "*.jar");
            if (!jars.isEmpty() && !libraries.isEmpty()) {
                jars.addAll(libraries);
                return new RunnableBuild(place.toString(), String.join(File.pathSeparator, jars), BENCH_MAIN);
            }
        }
        throw new IOException(place + " holds no build: neither a jar nor a checkout in which ./kvcache build was run");
    }

    /// The flags under which a JVM maps what the launcher rehearsed for this build; none where it did not.
    public List<String> aotFlags() {
        Path cache = Path.of(classPath.split(File.pathSeparator, 2)[0]).resolveSibling("kvcache.aot");
        return Files.exists(cache) ? List.of("-XX:AOTCache=" + cache, "-Xlog:aot*=off") : List.of();
    }

    /// Returns `java` with the flags that the launcher gave this JVM, without those of the AOT cache, and the
    /// class path
    /// of this build. A list of the caller's own.
    public List<String> javaCommand() {
        List<String> command = new ArrayList<>();
        command.add(ChildProcess.java());
        command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        command.removeIf(flag -> flag.startsWith("-XX:AOT") || flag.startsWith("-Xlog:aot"));
        command.addAll(List.of("-cp", classPath));
        return command;
    }

    private static String mainClass(Path jar) throws IOException {
        try (JarFile file = new JarFile(jar.toFile())) {
            Manifest manifest = file.getManifest();
            String main = manifest == null ? null : manifest.getMainAttributes().getValue(Attributes.Name.MAIN_CLASS);
            return main == null ? BENCH_MAIN : main;
        }
    }

    private static List<String> jars(Path folder, String glob) throws IOException {
        List<String> found = new ArrayList<>();
        if (Files.isDirectory(folder)) {
            // A running process keeps the build that it started with, whatever replaces the link.
            try (DirectoryStream<Path> files = Files.newDirectoryStream(folder.toRealPath(), glob)) {
                files.forEach(file -> found.add(file.toString()));
            }
        }
        Collections.sort(found);
        return found;
    }
}
