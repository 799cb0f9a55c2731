package io.kvcache.planner.report;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.planner.report.HtmlReport.ChartLibrary;
import io.kvcache.planner.report.HtmlReport.ReportOrigin;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceRequest;
import java.io.IOException;
import java.time.Instant;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

final class HtmlReportTest {

    private static final Pattern FETCHED = Pattern.compile("<[^>]*\\b(src|href|action|data)\\s*=|@import|url\\(");

    @Test
    void givenATraceWithMarkupInItsName_whenWritten_thenItIsTextEverywhere() throws IOException {
        for (HtmlReport htmlReport : new HtmlReport[] {
            SampleReports.lab("lab --trace " + SampleReports.NASTY),
            SampleReports.tiers("lab tiers --trace " + SampleReports.NASTY)
        }) {
            String html = htmlReport.toHtml();
            assertThat(html).doesNotContain("<script>alert");
            assertThat(html).contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&#39;&quot;");
        }
    }

    @Test
    void givenAPage_whenRead_thenNothingOutsideOfItIsNamed() throws IOException {
        String html = SampleReports.lab("lab").toHtml();
        String own = html.replace(ChartLibrary.load().script(), "");
        assertThat(own).isNotEqualTo(html).doesNotContainPattern(FETCHED).contains("default-src 'none'");
        assertThat(html).doesNotContain("sourceMappingURL");
    }

    @Test
    void givenRows_whenReadWithoutScripts_thenTheTablesHaveThemAll() throws IOException {
        String html = SampleReports.lab("lab").toHtml();
        assertThat(html.split("<tr>", -1)).hasSize(1 + 2 * (1 + 9) + 1 + 54);
        assertThat(html).contains(">30 %</th>", ">0.5 %</th>", "All 54 rows", ">w-tinylfu</td>");
        assertThat(html.split("<figure class=chart hidden>", -1)).hasSize(1 + 4);
    }

    @Test
    void givenReports_whenRead_thenTheySayWhatTheyWereMadeByAndFrom() throws IOException {
        for (HtmlReport htmlReport : new HtmlReport[] {SampleReports.lab("lab --x"), SampleReports.tiers("lab --x")}) {
            assertThat(htmlReport.toHtml())
                    .contains("Made by lab --x with KVCache 1.2.3, commit 0123456789ab+, on 2026-03-04 05:06 UTC")
                    .contains("SHA-256 of the trace " + SampleReports.SHA_256);
        }
    }

    @Test
    void givenRows_whenReported_thenTimesToTheFirstTokenAreDrawnForEveryPolicy() throws IOException {
        String html = SampleReports.lab("lab").toHtml();
        for (String title : List.of("Time to the first token, median", "Time to the first token, 99th percentile")) {
            JsonNode chart = chart(html, title);
            assertThat(chart.get("series")).hasSize(9);
            assertThat(chart.get("at")).hasSize(6);
            assertThat(chart.get("series").get(0).get("role").asString()).isEqualTo("BASELINE");
            assertThat(chart.get("series").get(8).get("role").asString()).isEqualTo("BOUND");
            assertThat(chart.get("series").get(3).get("values").get(5).asDouble())
                    .isEqualTo(title.endsWith("median") ? 0.2 : 3);
            assertThat(chart.get("note").asString()).isEmpty();
        }
    }

    @Test
    void givenATraceWithoutTimes_whenReported_thenTheChartsOfTheFirstTokenSaySo() throws IOException {
        TraceRequest request = new TraceRequest(0, 1024, 1, new long[] {1, 2});
        LabHtmlReport page = new LabHtmlReport();
        page.beginTrace(new Trace("timeless", List.of(request, request)), SampleReports.SHA_256);
        String html = page.toHtmlReport(new ReportOrigin("lab", "1", "", Instant.EPOCH))
                .toHtml();
        assertThat(chart(html, "Time to the first token, median").get("note").asString())
                .isEqualTo("the trace has no times, so these are of one queue");
        assertThat(html).contains("with KVCache 1, commit unknown, on 1970-01-01 00:00 UTC");
    }

    private static JsonNode chart(String html, String title) {
        Matcher figures =
                Pattern.compile("id=figures>(.*?)</script>", Pattern.DOTALL).matcher(html);
        assertThat(figures.find()).isTrue();
        JsonNode charts = JsonMapper.builder().build().readTree(figures.group(1));
        return StreamSupport.stream(charts.spliterator(), false)
                .filter(chart -> chart.get("title").asString().equals(title))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void givenTheLibrarysLicence_whenAPageIsWritten_thenItIsInside() throws IOException {
        assertThat(SampleReports.tiers("lab tiers").toHtml())
                .contains("Charts by Chart.js " + ChartLibrary.load().version())
                .contains("The above copyright notice and this permission notice shall be included in all copies");
    }
}
