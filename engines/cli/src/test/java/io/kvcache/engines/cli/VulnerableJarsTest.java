package io.kvcache.engines.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/// No jar that runs has a version with a known hole. Versions below come from the advisories' lists of fixed ones; a
/// new
/// advisory that concerns a jar of ours gets a line here and a version in the parent's dependency management.
class VulnerableJarsTest {

    /// @param from the first version that has it
    /// @param fixed the first after it that does not
    private record KnownVulnerability(String artifact, String from, String fixed, String advisory) {}

    private static final List<KnownVulnerability> HOLES = List.of(
            new KnownVulnerability("jinjava", "0", "2.7.5", "CVE-2025-59340: a template makes objects of any class"),
            new KnownVulnerability("jinjava", "2.8", "2.8.1", "CVE-2025-59340: a template makes objects of any class"),
            new KnownVulnerability("jinjava", "0", "2.7.6", "CVE-2026-25526: a loop of a template reaches classes"),
            new KnownVulnerability("jinjava", "2.8", "2.8.3", "CVE-2026-25526: a loop of a template reaches classes"),
            new KnownVulnerability("snakeyaml", "0", "2.0", "CVE-2022-1471: a document makes objects of any class"),
            new KnownVulnerability(
                    "commons-lang3", "0", "3.18.0", "CVE-2025-48924: endless recursion on long class names"),
            new KnownVulnerability(
                    "commons-net", "0", "3.9.0", "CVE-2021-37533: an FTP server names the host that is connected to"),
            new KnownVulnerability("guava", "0", "32.0.0", "CVE-2023-2976: temporary files that others may read"),
            new KnownVulnerability(
                    "jackson-databind", "0", "2.13.4.2", "CVE-2022-42003: endless recursion on nested arrays"),
            new KnownVulnerability("jackson-core", "0", "2.15.0", "CVE-2025-52999: endless recursion on nested input"),
            new KnownVulnerability("jackson-core", "2.15.0", "2.18.8", "CVE-2026-68494: numbers of any length"),
            new KnownVulnerability("jackson-core", "2.19", "2.21.4", "CVE-2026-68494: numbers of any length"),
            new KnownVulnerability("jackson-core", "2.22", "2.22.1", "CVE-2026-68494: numbers of any length"),
            new KnownVulnerability("jackson-core", "3.0", "3.1.0", "GHSA-72hv-8253-57qq: numbers of any length"),
            new KnownVulnerability("jackson-core", "3.2", "3.2.1", "CVE-2026-68494: numbers of any length"),
            new KnownVulnerability(
                    "netty-codec-http", "0", "4.2.5", "CVE-2025-58056: requests smuggled by chunks' line ends"),
            new KnownVulnerability(
                    "netty-codec-compression",
                    "0",
                    "4.2.5",
                    "CVE-2025-58057: input that decompresses without a limit"));

    private static final Pattern JAR = Pattern.compile("(.+?)-(\\d[\\d.]*\\d|\\d)([-.][^/]*)?\\.jar");

    @Test
    void givenTheClassPath_whenLookedThrough_thenNoJarHasAListedHole() {
        List<String> jars = Arrays.stream(
                        System.getProperty("java.class.path").split(Pattern.quote(File.pathSeparator)))
                .map(each -> String.valueOf(Path.of(each).getFileName()))
                .filter(each -> each.endsWith(".jar"))
                .toList();

        assertThat(jars).as("what is looked through").anyMatch(jar -> jar.startsWith("jinjava-"));
        assertThat(jars.stream().flatMap(jar -> hole(jar).stream())).isEmpty();
    }

    @Test
    void givenJarsOfAllKinds_whenRated_thenOnlyThoseWithAHoleAreNamed() {
        assertThat(hole("jinjava-2.7.2.jar"))
                .hasValueSatisfying(said -> assertThat(said)
                        .contains("jinjava-2.7.2.jar")
                        .contains("CVE-2025-59340")
                        .contains("2.7.5"));
        assertThat(hole("jinjava-2.8.2.jar")).isPresent();
        assertThat(hole("snakeyaml-1.33.jar")).isPresent();
        assertThat(hole("commons-lang3-3.9.jar")).isPresent();
        assertThat(hole("guava-31.1-jre.jar")).isPresent();
        assertThat(hole("netty-codec-http-4.1.100.Final.jar")).isPresent();
        assertThat(hole("jinjava-2.7.6.jar")).isEmpty();
        assertThat(hole("jackson-core-2.22.1.jar")).isEmpty();
        assertThat(hole("jackson-core-3.2.4.jar")).isEmpty();
        assertThat(hole("guava-32.0.1-jre.jar")).isEmpty();
        assertThat(hole("snakeyaml-engine-3.2.jar")).isEmpty();
    }

    private static Optional<String> hole(String jar) {
        Matcher name = JAR.matcher(jar);
        if (!name.matches()) {
            return Optional.empty();
        }
        String version = name.group(2);
        return HOLES.stream()
                .filter(knownVulnerability -> knownVulnerability.artifact().equals(name.group(1)))
                .filter(knownVulnerability -> compare(knownVulnerability.from(), version) <= 0
                        && compare(version, knownVulnerability.fixed()) < 0)
                .findFirst()
                .map(knownVulnerability ->
                        jar + " has " + knownVulnerability.advisory() + "; fixed in " + knownVulnerability.fixed());
    }

    private static int compare(String version, String other) {
        int[] left = numbers(version);
        int[] right = numbers(other);
        int length = Math.max(left.length, right.length);
        return Arrays.compare(Arrays.copyOf(left, length), Arrays.copyOf(right, length));
    }

    private static int[] numbers(String version) {
        return Pattern.compile("\\.")
                .splitAsStream(version)
                .mapToInt(Integer::parseInt)
                .toArray();
    }
}
