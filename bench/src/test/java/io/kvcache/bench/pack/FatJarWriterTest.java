package io.kvcache.bench.pack;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class FatJarWriterTest {

    private static final Path FLAGS = Path.of("..", ".mvn", "java-flags.sh");

    @TempDir
    private Path folder = Path.of("");

    private Path made = folder;
    private Path licence = folder;

    @BeforeEach
    void nameFiles() throws IOException {
        made = folder.resolve("one.jar");
        licence = Files.writeString(folder.resolve("LICENSE"), "ours");
    }

    private Path jar(String name, Map<String, String> files) throws IOException {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().put(Attributes.Name.IMPLEMENTATION_VERSION, name);
        Path file = folder.resolve(name);
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(file), manifest)) {
            for (Map.Entry<String, String> each : new TreeMap<>(files).entrySet()) {
                out.putNextEntry(new JarEntry(each.getKey()));
                out.write(each.getValue().getBytes(UTF_8));
                out.closeEntry();
            }
        }
        return file;
    }

    private Map<String, String> make(Path... jars) throws IOException {
        FatJarWriter.write(made, List.of(jars), List.of(licence));
        Map<String, String> files = new TreeMap<>();
        try (JarFile jar = new JarFile(made.toFile())) {
            for (JarEntry entry : (Iterable<JarEntry>) jar.stream()::iterator) {
                files.put(entry.getName(), new String(jar.getInputStream(entry).readAllBytes(), UTF_8));
            }
        }
        files.remove(JarFile.MANIFEST_NAME);
        return files;
    }

    @Test
    void givenServicesInTwoJars_whenMade_thenEachIsNamedOnce() throws IOException {
        Path first = jar("a.jar", Map.of("META-INF/services/s", "# ours\na.One\nboth.Two\n"));
        Path second = jar("b.jar", Map.of("META-INF/services/s", "both.Two\n\nb.Three"));

        assertThat(make(first, second)).containsEntry("META-INF/services/s", "a.One\nboth.Two\nb.Three\n");
    }

    @Test
    void givenLicencesOfOneName_whenMade_thenAllAreKeptBesideOurs() throws IOException {
        Path first = jar("a.jar", Map.of("META-INF/LICENSE.txt", "of a", "META-INF/NOTICE", "thanks"));
        Path second = jar("b.jar", Map.of("LICENSE.txt", "of b", "deep/LICENSE.md", "of c"));

        assertThat(make(first, second))
                .containsExactlyInAnyOrderEntriesOf(Map.of(
                        "META-INF/LICENSE", "ours",
                        "META-INF/licenses/a/LICENSE.txt", "of a",
                        "META-INF/licenses/a/NOTICE", "thanks",
                        "META-INF/licenses/b/LICENSE.txt", "of b",
                        "deep/LICENSE.md", "of c"));
    }

    @Test
    void givenWhatIsTrueOfOneJarAlone_whenMade_thenItIsLeftOut() throws IOException {
        Path signed = jar(
                "a.jar",
                Map.of(
                        "META-INF/KEY.SF", "signature",
                        "META-INF/KEY.RSA", "signature",
                        "META-INF/INDEX.LIST", "index",
                        "module-info.class", "border",
                        "META-INF/versions/9/module-info.class", "border",
                        "META-INF/versions/9/a/A.class", "of Java 9",
                        "a/A.class", "of Java 8",
                        "META-INF/native/a.so", "machine code"));

        assertThat(make(signed))
                .containsOnlyKeys(
                        "META-INF/LICENSE", "META-INF/versions/9/a/A.class", "a/A.class", "META-INF/native/a.so");
    }

    @Test
    void givenTheSameClassInTwoJars_whenMade_thenItGoesInOnce() throws IOException {
        Path first = jar("a.jar", Map.of("a/A.class", "same", "META-INF/maven/a/pom.properties", "1"));
        Path second = jar("b.jar", Map.of("a/A.class", "same", "META-INF/maven/a/pom.properties", "2"));

        assertThat(make(first, second))
                .containsEntry("a/A.class", "same")
                .containsEntry("META-INF/maven/a/pom.properties", "1");
    }

    @Test
    void givenTwoClassesOfOneName_whenMade_thenBothJarsAreNamedAndWhatWasThereStays() throws IOException {
        Path first = jar("a.jar", Map.of("a/A.class", "one"));
        Path second = jar("b.jar", Map.of("a/A.class", "two"));
        Files.writeString(made, "made before");

        assertThatThrownBy(() -> make(first, second))
                .isInstanceOf(IOException.class)
                .hasMessage("a/A.class is another in a.jar than in b.jar: one of them must go");
        assertThat(made).hasContent("made before");
        assertThat(folder.resolve("one.jar.part")).doesNotExist();
    }

    @Test
    void givenJars_whenMadeTwice_thenTheBytesAreTheSame() throws IOException {
        Path first = jar("a.jar", Map.of("a/A.class", "a"));
        make(first);
        byte[] before = Files.readAllBytes(made);
        make(first);

        assertThat(made).hasBinaryContent(before);
    }

    @Test
    void givenTheLaunchersFlags_whenMade_thenTheManifestSaysWhatAManifestCan() throws IOException {
        make(jar("a.jar", Map.of("a/A.class", "a")));
        String flags = Files.readString(FLAGS);

        try (JarFile jar = new JarFile(made.toFile())) {
            Attributes main = jar.getManifest().getMainAttributes();
            assertThat(String.join(" ", values(flags, "--add-exports (\\S+)=ALL-UNNAMED")))
                    .isNotEmpty()
                    .isEqualTo(main.getValue("Add-Exports"));
            assertThat(values(flags, "--enable-native-access=([A-Z-]+)"))
                    .containsExactly(main.getValue("Enable-Native-Access"));
            assertThat(values(flags, "(--add-opens)")).isEmpty();
            assertThat(main.getValue("Main-Class")).isEqualTo("io.kvcache.server.cli.Kvcache");
            assertThat(main.getValue("Implementation-Version")).isEqualTo("a.jar");
            assertThat(jar.isMultiRelease()).isTrue();
        }
    }

    private static List<String> values(String flags, String pattern) {
        return Pattern.compile(pattern)
                .matcher(flags)
                .results()
                .map(MatchResult::group)
                .map(found -> found.replaceAll(pattern, "$1"))
                .toList();
    }
}
