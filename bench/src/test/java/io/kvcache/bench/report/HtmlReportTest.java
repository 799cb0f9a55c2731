package io.kvcache.bench.report;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.report.HtmlReport.ChartLibrary;
import java.io.IOException;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

final class HtmlReportTest {

    private static final Pattern FETCHED = Pattern.compile("<[^>]*\\b(src|href|action|data)\\s*=|@import|url\\(");

    @Test
    void givenATraceWithMarkupInItsName_whenWritten_thenItIsTextEverywhere() throws IOException {
        for (HtmlReport htmlReport : new HtmlReport[] {
            SampleReports.lab("lab --trace " + SampleReports.NASTY).toHtmlReport(),
            SampleReports.tiers("lab tiers --trace " + SampleReports.NASTY).toHtmlReport()
        }) {
            String html = htmlReport.toHtml();
            assertThat(html).doesNotContain("<script>alert");
            assertThat(html).contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&#39;&quot;");
        }
    }

    @Test
    void givenAPage_whenRead_thenNothingOutsideOfItIsNamed() throws IOException {
        String html = SampleReports.lab("lab").toHtmlReport().toHtml();
        String own = html.replace(ChartLibrary.load().script(), "");
        assertThat(own).isNotEqualTo(html).doesNotContainPattern(FETCHED).contains("default-src 'none'");
        assertThat(html).doesNotContain("sourceMappingURL");
    }

    @Test
    void givenRows_whenReadWithoutScripts_thenTheTablesHaveThemAll() throws IOException {
        String html = SampleReports.lab("lab").toHtmlReport().toHtml();
        assertThat(html.split("<tr>", -1)).hasSize(1 + 2 * (1 + 9) + 1 + 54);
        assertThat(html).contains(">30 %</th>", ">0.5 %</th>", "All 54 rows", ">w-tinylfu</td>");
        assertThat(html.split("<figure class=chart hidden>", -1)).hasSize(1 + 2);
    }

    @Test
    void givenTheLibrarysLicence_whenAPageIsWritten_thenItIsInside() throws IOException {
        assertThat(SampleReports.tiers("lab tiers").toHtmlReport().toHtml())
                .contains("Charts by Chart.js " + ChartLibrary.load().version())
                .contains("The above copyright notice and this permission notice shall be included in all copies");
    }
}
