package io.kvcache.bench.report;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import tools.jackson.databind.json.JsonMapper;

/// One HTML file of headings, charts and tables.
///
/// The charting library, the styles and the data are inside of it, and its policy of content forbids the
/// browser to fetch anything. Without scripts the charts are not shown, and the tables are.
public final class HtmlReport {

    private static final String CONTENT_SECURITY_POLICY =
            "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
    private static final String RESOURCE_FOLDER = "io/kvcache/bench/report/";

    private final String title;
    private final HtmlWriter body = new HtmlWriter();
    private final List<Chart> figures = new ArrayList<>();

    /// @param subtitle where the numbers come from
    public HtmlReport(String title, String subtitle) {
        this.title = title;
        body.raw("<header>").element("h1", title).element("p", subtitle).raw("</header>\n<main>\n");
    }

    /// What follows belongs together.
    public void addSection(String heading, String text) {
        body.element("h2", heading).element("p", text);
    }

    /// Charts side by side where there is room.
    public void addCharts(List<Chart> charts) {
        body.raw("<div class=charts>\n");
        for (Chart each : charts) {
            body.chart(figures.size(), each);
            figures.add(each);
        }
        body.raw("</div>\n");
    }

    /// A table.
    public void addTable(HtmlTable table) {
        body.table(table);
    }

    /// A table that is folded away.
    public void addFoldedTable(String summary, HtmlTable table) {
        body.raw("<details>").element("summary", summary).table(table).raw("</details>\n");
    }

    /// Writes the file, in place of one that is there.
    public void write(Path file) throws IOException {
        Files.writeString(file, toHtml(), StandardCharsets.UTF_8);
    }

    /// The document.
    public String toHtml() throws IOException {
        ChartLibrary library = ChartLibrary.load();
        return new HtmlWriter()
                .raw("<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n")
                .raw("<meta name=viewport content=\"width=device-width, initial-scale=1\">\n")
                .raw("<meta name=color-scheme content=\"light dark\">\n")
                .raw("<meta http-equiv=Content-Security-Policy content=\"" + CONTENT_SECURITY_POLICY + "\">\n")
                .element("title", title)
                .raw("<style>\n" + ChartLibrary.readResource(RESOURCE_FOLDER + "report.css")
                        + "</style>\n</head>\n<body>\n")
                .raw(body.toString())
                .raw("</main>\n<footer><details>")
                .element("summary", "Charts by Chart.js " + library.version() + ", MIT licence")
                .element("pre", library.licence().strip())
                .raw("</details></footer>\n")
                .raw("<script type=application/json id=figures>" + json() + "</script>\n")
                .raw("<script>\n" + library.script() + "\n</script>\n")
                .raw("<script>\n" + ChartLibrary.readResource(RESOURCE_FOLDER + "report.js")
                        + "</script>\n</body>\n</html>\n")
                .toString();
    }

    /// Nothing in it can end the element that it stands in.
    private String json() {
        return JsonMapper.builder()
                .build()
                .writeValueAsString(figures)
                .replace("<", "\\u003c")
                .replace("\u2028", "\\u2028")
                .replace("\u2029", "\\u2029");
    }

    /// A share of one in percent, for tables.
    static String percent(double share) {
        return String.format(Locale.ROOT, "%.2f %%", 100 * share);
    }

    /// Chart.js, from the jar that the build took it from: `org.webjars.npm:chart.js`, which is the package of
    /// that name and version of the npm registry.
    ///
    /// @param version as the jar says it
    /// @param script to be put into a page
    /// @param licence its text
    record ChartLibrary(String version, String script, String licence) {

        private static final String PROPERTIES_PATH = "META-INF/maven/org.webjars.npm/chart.js/pom.properties";
        private static final String RESOURCE_PATH = "META-INF/resources/webjars/chart.js/";

        static ChartLibrary load() throws IOException {
            Properties about = new Properties();
            about.load(new StringReader(readResource(PROPERTIES_PATH)));
            String version = about.getProperty("version");
            String script = readResource(RESOURCE_PATH + version + "/dist/chart.umd.min.js");
            // The browser's tools would look for the map beside the page.
            int map = script.indexOf("//# sourceMappingURL");
            return new ChartLibrary(
                    version,
                    map < 0 ? script : script.substring(0, map),
                    readResource(RESOURCE_PATH + version + "/LICENSE.md"));
        }

        /// A file of the class path.
        static String readResource(String resource) throws IOException {
            try (InputStream from = ChartLibrary.class.getClassLoader().getResourceAsStream(resource)) {
                if (from == null) {
                    throw new FileNotFoundException("not on the class path: " + resource);
                }
                return new String(from.readAllBytes(), StandardCharsets.UTF_8);
            }
        }
    }
}
