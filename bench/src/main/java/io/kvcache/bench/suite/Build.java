package io.kvcache.bench.suite;

import java.io.File;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/// A build of KVCache that can be run: this one, another checkout's, or one jar.
///
/// @param name for tables and messages
/// @param classPath all jars of the command line, with the path separator between them
public record Build(String name, String classPath) {

    private static final List<String> PLACES = List.of(".kvcache/run", "bench/target");

    /// The build that this code comes from.
    public static Build running() {
        return new Build("this build", System.getProperty("java.class.path"));
    }

    /// The build in a checkout that was built, or in one jar.
    ///
    /// @throws IOException when nothing that can run is there
    public static Build at(Path place) throws IOException {
        if (Files.isRegularFile(place)) {
            return new Build(place.toString(), place.toAbsolutePath().toString());
        }
        for (String inside : PLACES) {
            Path folder = place.resolve(inside);
            List<String> jars = jars(folder, "kvcache-bench-*.jar");
            List<String> libraries = jars(folder.resolve("lib"), "*.jar");
            if (!jars.isEmpty() && !libraries.isEmpty()) {
                jars.addAll(libraries);
                return new Build(place.toString(), String.join(File.pathSeparator, jars));
            }
        }
        throw new IOException(place + " holds no build: neither a jar nor a checkout in which ./kvcache build was run");
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
