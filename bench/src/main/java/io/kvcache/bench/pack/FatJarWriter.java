package io.kvcache.bench.pack;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedSet;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.zip.ZipFile;

/// Makes one jar of many that runs with `java -jar` and nothing beside it.
///
/// Classes for several releases of Java stay where they are, lists of services are joined, and every licence is kept.
/// The same jars in make the same bytes out, as all files bear the time that the first jar's manifest bears. Two jars
/// that disagree about a file are an error: which of them a class path finds first is chance.
public final class FatJarWriter {

    /// The folder that holds a folder of licences for each jar.
    static final String LICENCES = "META-INF/licenses/";

    private static final String MAIN_CLASS = "io.kvcache.server.cli.Kvcache";

    private final JarOutputStream out;
    private final long time;
    private final Map<String, JarSource> written = new HashMap<>();
    private final SortedMap<String, SequencedSet<String>> serviceLists = new TreeMap<>();

    private FatJarWriter(JarOutputStream out, long time) {
        this.out = out;
        this.time = time;
    }

    private record JarSource(Path jar, long size, long crc) {

        boolean hasSameContent(JarSource other) {
            return size == other.size && crc == other.crc;
        }
    }

    /// Makes the jar that is named first from those after it. `LICENSE` and `NOTICE` of the working directory go with
    /// them.
    ///
    /// @param arguments the jar to make, ours with its version, then jars and folders of jars
    /// @throws IOException when jars disagree, or one cannot be read or written
    public static void main(String... arguments) throws IOException {
        List<Path> jars = new ArrayList<>();
        for (String each : List.of(arguments).subList(1, arguments.length)) {
            jars.addAll(jars(Path.of(each)));
        }
        write(Path.of(arguments[0]), jars, List.of(Path.of("LICENSE"), Path.of("NOTICE")));
    }

    private static List<Path> jars(Path place) throws IOException {
        if (!Files.isDirectory(place)) {
            return List.of(place);
        }
        try (var files = Files.list(place)) {
            return files.filter(file -> file.toString().endsWith(".jar"))
                    .sorted(Comparator.comparing(Path::toString))
                    .toList();
        }
    }

    /// Makes the jar, or leaves what was there.
    ///
    /// @param jars ours first, whose manifest has the version
    /// @param legal files that go to `META-INF`
    static void write(Path to, List<Path> jars, List<Path> legal) throws IOException {
        Path unfinished = to.resolveSibling(to.getFileName() + ".part");
        try {
            try (JarFile ours = new JarFile(jars.getFirst().toFile());
                    JarOutputStream out = new JarOutputStream(Files.newOutputStream(unfinished))) {
                FatJarWriter made = new FatJarWriter(
                        out, ours.getEntry(JarFile.MANIFEST_NAME).getTime());
                made.add(JarFile.MANIFEST_NAME, manifest(ours.getManifest()));
                for (Path file : legal) {
                    made.add("META-INF/" + file.getFileName(), Files.readAllBytes(file));
                }
                for (Path jar : jars) {
                    made.addAll(jar);
                }
                made.addLists();
            }
            Files.move(unfinished, to, StandardCopyOption.REPLACE_EXISTING);
        } finally {
            Files.deleteIfExists(unfinished);
        }
    }

    /// What the launcher passes to the JVM by flags, as far as a manifest can say it.
    private static byte[] manifest(Manifest ours) throws IOException {
        Manifest manifest = new Manifest();
        Attributes main = manifest.getMainAttributes();
        main.put(Attributes.Name.MANIFEST_VERSION, "1.0");
        main.put(Attributes.Name.MAIN_CLASS, MAIN_CLASS);
        main.put(Attributes.Name.MULTI_RELEASE, "true");
        main.put(Attributes.Name.IMPLEMENTATION_TITLE, "KVCache");
        main.put(
                Attributes.Name.IMPLEMENTATION_VERSION,
                ours.getMainAttributes().getValue(Attributes.Name.IMPLEMENTATION_VERSION));
        main.put(new Attributes.Name("Enable-Native-Access"), "ALL-UNNAMED");
        main.put(new Attributes.Name("Add-Exports"), "java.base/jdk.internal.misc");
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        manifest.write(bytes);
        return bytes.toByteArray();
    }

    private void addAll(Path path) throws IOException {
        try (JarFile jar = new JarFile(path.toFile(), false, ZipFile.OPEN_READ)) {
            for (JarEntry entry : (Iterable<JarEntry>) jar.stream()::iterator) {
                if (!entry.isDirectory()) {
                    add(jar, path, entry);
                }
            }
        }
    }

    private void add(JarFile jar, Path path, JarEntry entry) throws IOException {
        String name = entry.getName();
        JarSource source = new JarSource(path, entry.getSize(), entry.getCrc());
        switch (JarEntryPolicy.of(name)) {
            case DROP -> {}
            case JOIN ->
                serviceLists.computeIfAbsent(name, _ -> new LinkedHashSet<>()).addAll(lines(jar, entry));
            case KEEP_APART -> copy(LICENCES + folder(path) + "/" + name.replace("META-INF/", ""), source, jar, entry);
            case FIRST -> {
                if (!written.containsKey(name)) {
                    copy(name, source, jar, entry);
                }
            }
            case COPY -> copy(name, source, jar, entry);
        }
    }

    private static Collection<String> lines(JarFile jar, JarEntry entry) throws IOException {
        try (InputStream in = jar.getInputStream(entry)) {
            return new String(in.readAllBytes(), UTF_8)
                    .lines()
                    .filter(line -> !line.isBlank() && !line.startsWith("#"))
                    .toList();
        }
    }

    private static String folder(Path jar) {
        return jar.getFileName().toString().replaceFirst("\\.jar$", "");
    }

    private void copy(String name, JarSource source, JarFile jar, JarEntry entry) throws IOException {
        JarSource before = written.putIfAbsent(name, source);
        if (before == null) {
            try (InputStream in = jar.getInputStream(entry)) {
                begin(name);
                in.transferTo(out);
                out.closeEntry();
            }
        } else if (!before.hasSameContent(source)) {
            throw new IOException(name + " is another in " + before.jar.getFileName() + " than in "
                    + source.jar.getFileName() + ": one of them must go");
        }
    }

    private void addLists() throws IOException {
        for (Map.Entry<String, SequencedSet<String>> list : serviceLists.entrySet()) {
            add(list.getKey(), (String.join("\n", list.getValue()) + "\n").getBytes(UTF_8));
        }
    }

    private void add(String name, byte[] bytes) throws IOException {
        begin(name);
        out.write(bytes);
        out.closeEntry();
    }

    private void begin(String name) throws IOException {
        JarEntry entry = new JarEntry(name);
        entry.setTime(time);
        out.putNextEntry(entry);
    }
}
