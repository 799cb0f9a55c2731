package io.kvcache.planner.trace;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class TraceFinderTest {

    @TempDir
    private Path root;

    @Test
    void givenSharedFolderAbove_whenSearched_thenFound() throws IOException {
        Path file = trace(root.resolve("shared/traces"));
        Path deep = Files.createDirectories(root.resolve("project/module"));
        assertThat(new TraceFinder(deep, name -> "").find("some")).contains(file);
        assertThat(new TraceFinder(deep, name -> "").find("other")).isEmpty();
        assertThat(new TraceFinder(deep, name -> "").findOrGenerated(List.of("some", "other")))
                .containsExactly("some");
        assertThat(new TraceFinder(deep, name -> "").findOrGenerated(List.of("other")))
                .containsExactly("generated:1");
    }

    @Test
    void givenSetting_whenSearched_thenItDecides() throws IOException {
        trace(root.resolve("shared/traces"));
        Path file = trace(root.resolve("elsewhere"));
        String elsewhere = root.resolve("elsewhere").toString();
        assertThat(new TraceFinder(root, name -> elsewhere).find("some")).contains(file);
        assertThat(new TraceFinder(root, name -> elsewhere + "-not-there").find("some"))
                .isEmpty();
    }

    private static Path trace(Path folder) throws IOException {
        Files.createDirectories(folder);
        return Files.writeString(folder.resolve("some_trace.jsonl"), "");
    }
}
