package io.kvcache.tiers.example;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class EmbeddingExampleTest {

    @TempDir
    private Path folder;

    @Test
    void givenTheReadmesExample_whenRunAgain_thenThePromptComesFromTheDisk() {
        EmbeddingExample example = new EmbeddingExample();
        int[] prompt = IntStream.range(0, 100).toArray();

        assertThat(example.run(prompt, folder.resolve("disk"), 1L << 30)).isEqualTo(6);
        assertThat(example.computed()).isEqualTo(6);
        assertThat(example.run(prompt, folder.resolve("disk"), 1L << 30)).isEqualTo(6);
        assertThat(example.computed()).as("with those of the second run").isEqualTo(6);
    }

    @Test
    void givenTheReadme_whenCompared_thenItShowsThisExample() throws IOException {
        Path module = Path.of("").toAbsolutePath();
        Path source = module.resolve("src/test/java/io/kvcache/tiers/example/EmbeddingExample.java");
        List<String> lines = Files.readAllLines(source);
        int begin = indexOf(lines, "// README begin");
        int end = indexOf(lines, "// README end");
        String example = lines.subList(begin + 1, end).stream()
                .map(line -> line.isBlank() ? "" : line.substring(8))
                .collect(Collectors.joining("\n"));
        assertThat(Files.readString(module.resolveSibling("README.md"))).contains(example);
    }

    private static int indexOf(List<String> lines, String marker) {
        for (int i = 0; i < lines.size(); i++) {
            if (lines.get(i).strip().equals(marker)) {
                return i;
            }
        }
        throw new AssertionError("no line " + marker);
    }
}
