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

    /// HTML, piece by piece. Every text that comes in is escaped here and nowhere else.
    private static final class HtmlWriter {

        /// Colour behind a cell never hides its text.
        private static final double MAX_HEAT_PERCENT = 42;

        private final StringBuilder html = new StringBuilder(1 << 16);

        /// A text that means itself, between tags and inside of quoted attributes.
        static String escape(String text) {
            StringBuilder escaped = new StringBuilder(text.length() + 16);
            text.codePoints().forEach(point -> {
                switch (point) {
                    case '&' -> escaped.append("&amp;");
                    case '<' -> escaped.append("&lt;");
                    case '>' -> escaped.append("&gt;");
                    case '"' -> escaped.append("&quot;");
                    case '\'' -> escaped.append("&#39;");
                    default -> escaped.appendCodePoint(Character.isISOControl(point) && point != '\n' ? 0xFFFD : point);
                }
            });
            return escaped.toString();
        }

        /// Something that is HTML already.
        HtmlWriter raw(String text) {
            html.append(text);
            return this;
        }

        /// An element that holds a text only.
        HtmlWriter element(String name, String text) {
            html.append('<').append(name).append('>').append(escape(text));
            html.append("</").append(name).append(">\n");
            return this;
        }

        HtmlWriter chart(int index, Chart chart) {
            raw("<figure class=chart hidden><figcaption>").element("b", chart.title());
            if (!chart.note().isEmpty()) {
                element("span", chart.note());
            }
            int rows =
                    chart.form() == Chart.ChartType.LINES ? 0 : chart.labels().size();
            return raw("</figcaption><div class=plot")
                    .raw(rows == 0 ? "" : " style=\"--rows:" + rows + "\"")
                    .raw("><canvas data-figure=" + index + " role=img aria-label=\"")
                    .raw(escape(chart.title()))
                    .raw("\"></canvas></div></figure>\n");
        }

        HtmlWriter table(HtmlTable table) {
            raw("<div class=scroll><table>").element("caption", table.caption()).raw("<thead><tr>");
            for (int i = 0; i < table.heads().size(); i++) {
                boolean number = !table.rows().isEmpty()
                        && table.rows().getFirst().get(i).number();
                raw(number ? "<th scope=col class=n>" : "<th scope=col>")
                        .raw(escape(table.heads().get(i)))
                        .raw("</th>");
            }
            raw("</tr></thead><tbody>\n");
            for (List<HtmlTable.Cell> row : table.rows()) {
                raw("<tr>");
                row.forEach(this::cell);
                raw("</tr>\n");
            }
            return raw("</tbody></table></div>\n");
        }

        private void cell(HtmlTable.Cell cell) {
            html.append("<td");
            if (cell.number() || cell.best()) {
                html.append(" class=\"")
                        .append(cell.number() ? "n" : "")
                        .append(cell.best() ? " best" : "")
                        .append('"');
            }
            if (cell.heat() > 0) {
                html.append(String.format(
                        Locale.ROOT, " style=\"--heat:%.0f%%\"", MAX_HEAT_PERCENT * Math.min(1, cell.heat())));
            }
            html.append('>').append(escape(cell.text())).append("</td>");
        }

        @Override
        public String toString() {
            return html.toString();
        }
    }

    /// A table, which is there without scripts too.
    ///
    /// @param caption what it shows
    /// @param heads of the columns
    /// @param rows as long as the heads
    public record HtmlTable(String caption, List<String> heads, List<List<Cell>> rows) {

        /// One place of a table.
        ///
        /// @param text as it is shown, not yet escaped
        /// @param number whether it stands to the right
        /// @param heat how strongly it is coloured, 0 to 1
        /// @param best whether it is the best of its column
        public record Cell(String text, boolean number, double heat, boolean best) {

            /// Words.
            public static Cell text(String text) {
                return new Cell(text, false, 0, false);
            }

            /// A number, as it is shown.
            public static Cell number(String text) {
                return new Cell(text, true, 0, false);
            }
        }
    }
}
