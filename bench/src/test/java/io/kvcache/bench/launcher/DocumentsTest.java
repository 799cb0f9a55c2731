package io.kvcache.bench.launcher;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// The documents of the repository: their links, lines and numbers.
final class DocumentsTest {

    private static final Path REPOSITORY = Path.of("..").toAbsolutePath().normalize();

    /// What a reviewer, and git, can show as a change of a line.
    private static final int MAX_COLUMNS = 400;

    private static final Pattern LINK = Pattern.compile("]\\(([^)\\s]+)\\)");
    private static final Pattern HEADING = Pattern.compile("#+ +(.*)");

    /// A ratio is `94.5 %` or `0.95`, never a number that begins with its point.
    private static final Pattern POINT_FIRST = Pattern.compile("(?<![\\w.)/`\"\\]])\\.\\d");

    private record Line(Path page, int number, String text) {
        @Override
        public String toString() {
            return REPOSITORY.relativize(page) + ":" + number + ": " + text;
        }
    }

    private static List<Path> pages() throws IOException {
        try (Stream<Path> files = Files.walk(REPOSITORY, 4)) {
            return files.filter(file -> file.toString().endsWith(".md"))
                    .filter(file -> Stream.of("target", ".kvcache", ".git", "shared", "node_modules")
                            .noneMatch(name ->
                                    REPOSITORY.relativize(file).toString().contains(name)))
                    .toList();
        }
    }

    /// Returns the lines that are wrong, code between fences left out.
    private static List<Line> lines(Predicate<String> wrong) throws IOException {
        List<Line> found = new ArrayList<>();
        for (Path page : pages()) {
            boolean code = false;
            int number = 0;
            for (String text : Files.readAllLines(page)) {
                number++;
                code ^= text.startsWith("```");
                if (!code && wrong.test(text)) {
                    found.add(new Line(page, number, text));
                }
            }
        }
        return found;
    }

    @Test
    void givenDocuments_whenMeasured_thenNoLineIsTooLongToReview() throws IOException {
        assertThat(pages()).hasSizeGreaterThan(20);
        assertThat(lines(text -> text.length() > MAX_COLUMNS)).isEmpty();
    }

    @Test
    void givenNumbers_whenRead_thenNoneBeginsWithItsPoint() throws IOException {
        assertThat(lines(text -> POINT_FIRST.matcher(text).find())).isEmpty();
    }

    @Test
    void givenLinks_whenFollowed_thenTheFileAndTheHeadingAreThere() throws IOException {
        List<String> broken = new ArrayList<>();
        for (Path page : pages()) {
            Matcher link = LINK.matcher(Files.readString(page));
            while (link.find()) {
                String to = link.group(1);
                if (!to.contains(":") && !leads(page, to)) {
                    broken.add(REPOSITORY.relativize(page) + ": " + to);
                }
            }
        }
        assertThat(broken).isEmpty();
    }

    private static boolean leads(Path page, String to) throws IOException {
        int hash = to.indexOf('#');
        String file = hash < 0 ? to : to.substring(0, hash);
        Path target = file.isEmpty() ? page : page.resolveSibling(file).normalize();
        return Files.exists(target)
                && (hash < 0
                        || !target.toString().endsWith(".md")
                        || anchors(target).contains(to.substring(hash + 1)));
    }

    /// Returns the names that headings get where the page is shown.
    private static Set<String> anchors(Path page) throws IOException {
        Set<String> anchors = new TreeSet<>();
        for (String line : Files.readAllLines(page)) {
            Matcher heading = HEADING.matcher(line);
            if (heading.matches()) {
                String text = heading.group(1).strip().toLowerCase(Locale.ROOT);
                anchors.add(text.replaceAll("[^\\w\\- ]", "").replace(' ', '-'));
            }
        }
        return anchors;
    }
}
