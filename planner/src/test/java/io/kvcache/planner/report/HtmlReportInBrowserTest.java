package io.kvcache.planner.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.awt.image.BufferedImage;
import java.io.File;
import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// Opens reports in Chromium. A script that the test puts into the page waits until every canvas has something on
/// it and then says what it saw.
@Tag("slow")
final class HtmlReportInBrowserTest {

    private static final String PROBE = """
            <script>
            const seen = {errors: [], refused: [], fetched: [], painted: 0, canvases: 0, tables: 0};
            addEventListener('error', (e) => seen.errors.push(String(e.message)));
            addEventListener('securitypolicyviolation', (e) => seen.refused.push(e.blockedURI));
            for (const kind of ['error', 'warn']) console[kind] = (...words) => seen.errors.push(words.join(' '));
            const isPainted = (canvas) => canvas.width > 0 && canvas.height > 0
                && canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0);
            function look(left) {
              const canvases = [...document.querySelectorAll('canvas')];
              seen.canvases = canvases.length;
              seen.painted = canvases.filter(isPainted).length;
              if (seen.painted < seen.canvases && left > 0) return setTimeout(look, 50, left - 1);
              seen.tables = document.querySelectorAll('table').length;
              seen.fetched = performance.getEntriesByType('resource').map((entry) => entry.name);
              document.documentElement.dataset.seen = encodeURIComponent(JSON.stringify(seen));
            }
            addEventListener('load', () => look(100));
            </script>
            """;
    private static final Pattern SEEN = Pattern.compile("data-seen=\"([^\"]*)\"");
    private static final int MIN_COLOURS = 8;

    private final Path folder;
    private final HeadlessChromium chromium;

    HtmlReportInBrowserTest(@TempDir Path folder) throws IOException {
        Optional<Path> program = HeadlessChromium.find();
        assumeTrue(program.isPresent(), "chromium is not installed (package chromium-headless-shell)");
        this.folder = folder;
        chromium = new HeadlessChromium(program.orElseThrow(), folder);
    }

    @Test
    void givenTheLaboratorysPage_whenOpened_thenAllChartsAreDrawnAndNothingIsFetched() throws IOException {
        check(SampleReports.lab("lab --trace " + SampleReports.NASTY), 4, 3);
    }

    @Test
    void givenThePageOfTiers_whenOpened_thenAllChartsAreDrawnAndNothingIsFetched() throws IOException {
        check(SampleReports.tiers("lab tiers"), 5, 1);
    }

    @Test
    void givenAPage_whenPainted_thenThePictureHasTheColoursOfItsLines() throws IOException {
        Path file = folder.resolve("page.html");
        SampleReports.lab("lab").write(file);
        File picture = folder.resolve("page.png").toFile();
        chromium.paint(file, picture.toPath(), List.of("--window-size=1280,900"));
        BufferedImage painted = ImageIO.read(picture);
        assertThat(painted.getWidth()).isEqualTo(1280);
        long colours = IntStream.range(0, painted.getWidth() * painted.getHeight())
                .map(i -> painted.getRGB(i % painted.getWidth(), i / painted.getWidth()))
                .filter(HtmlReportInBrowserTest::isStrong)
                .map(rgb -> rgb & 0xE0E0E0)
                .distinct()
                .count();
        assertThat(colours).isGreaterThanOrEqualTo(MIN_COLOURS);
    }

    private void check(HtmlReport htmlReport, int charts, int tables) throws IOException {
        Path file = folder.resolve("page.html");
        Files.writeString(
                file, htmlReport.toHtml().replaceFirst("<title>", Matcher.quoteReplacement(PROBE + "<title>")));
        HeadlessChromium.PageVisit visit = chromium.open(file);
        Matcher found = SEEN.matcher(visit.page());
        assertThat(found.find()).as("the probe's word; %s", visit.messages()).isTrue();
        JsonNode seen =
                JsonMapper.builder().build().readTree(URLDecoder.decode(found.group(1), StandardCharsets.UTF_8));
        assertThat(seen.get("errors")).as("errors").isEmpty();
        assertThat(seen.get("refused")).as("refused by the page's policy").isEmpty();
        assertThat(seen.get("fetched")).as("fetched").isEmpty();
        assertThat(seen.get("canvases").asInt()).isEqualTo(charts);
        assertThat(seen.get("painted").asInt()).isEqualTo(charts);
        assertThat(seen.get("tables").asInt()).isEqualTo(tables);
        assertThat(visit.messages()).doesNotContain("CONSOLE");
    }

    /// Neither grey nor nearly white or black.
    private static boolean isStrong(int rgb) {
        int red = rgb >> 16 & 255;
        int green = rgb >> 8 & 255;
        int blue = rgb & 255;
        return Math.max(red, Math.max(green, blue)) - Math.min(red, Math.min(green, blue)) > 60;
    }
}
