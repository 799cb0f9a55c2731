package io.kvcache.planner.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// The values of CONSTANTS.md are those of the sources.
final class ConstantsPageTest {

    private static final Path SOURCES = Path.of("..", "kvcache-core", "src", "main", "java", "io", "kvcache", "core");
    private static final Pattern ROW = Pattern.compile("\\| `(\\w+)\\.(\\w+)` \\| ([^|]+) \\|([^|]+\\|){4,}");
    private static final Pattern DEFAULTS = Pattern.compile("DEFAULT = new ImportanceConfig\\(([^)]*)\\)");

    @Test
    void givenThePage_whenReadBesideTheSources_thenEachValueIsThere() throws IOException {
        List<String> sources = sources();
        List<String> wrong = new ArrayList<>();
        List<MatchResult> rows = Files.readString(Path.of("CONSTANTS.md"))
                .lines()
                .map(ROW::matcher)
                .filter(Matcher::matches)
                .map(Matcher::toMatchResult)
                .toList();
        for (MatchResult row : rows) {
            Pattern declared = Pattern.compile("\\b(class|record|enum) " + row.group(1) + "\\b");
            boolean found = sources.stream()
                    .filter(source -> declared.matcher(source).find())
                    .anyMatch(source -> has(source, row.group(1), row.group(2), row.group(3)));
            if (!found) {
                wrong.add(row.group(1) + "." + row.group(2) + " = " + row.group(3));
            }
        }
        assertThat(rows).hasSizeGreaterThan(30);
        assertThat(wrong).as("constants that are not as CONSTANTS.md says").isEmpty();
    }

    private static boolean has(String source, String type, String name, String value) {
        if (type.equals("ImportanceConfig")) {
            Matcher defaults = DEFAULTS.matcher(source);
            return source.contains(" " + name)
                    && defaults.find()
                    && List.of(defaults.group(1).split(", *")).contains(value);
        }
        return Pattern.compile(
                        "static final (int|long|double|float) " + name + "\\s*=\\s*" + Pattern.quote(value) + ";")
                .matcher(source)
                .find();
    }

    private static List<String> sources() throws IOException {
        List<String> all = new ArrayList<>();
        try (Stream<Path> files = Files.walk(SOURCES)) {
            for (Path file :
                    files.filter(each -> each.toString().endsWith(".java")).toList()) {
                all.add(Files.readString(file));
            }
        }
        return all;
    }
}
