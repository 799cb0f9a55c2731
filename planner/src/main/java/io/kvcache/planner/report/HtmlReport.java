package io.kvcache.planner.report;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;

/// One HTML file of headings, charts and tables.
///
/// It contains the charting library, the styles and the data, and its content security policy forbids the browser
/// to fetch anything. Without scripts a reader sees the tables, but no charts.
public final class HtmlReport {

    private static final Pattern PLACEHOLDER = Pattern.compile("\\$\\{([a-z]+)}");
    private static final String RESOURCE_FOLDER = "io/kvcache/planner/report/";

    private final String title;
    private final String subtitle;
    private final HtmlWriter body = new HtmlWriter();
    private final List<Chart> figures = new ArrayList<>();

    /// @param subtitle the source of the numbers
    public HtmlReport(String title, String subtitle) {
        this.title = title;
        this.subtitle = subtitle;
    }

    /// Begins a section.
    public void addSection(String heading, String text) {
        body.element("h2", heading).element("p", text);
    }

    /// Adds charts, side by side where there is room.
    public void addCharts(List<Chart> charts) {
        body.raw("<div class=charts>\n");
        for (Chart each : charts) {
            body.chart(figures.size(), each);
            figures.add(each);
        }
        body.raw("</div>\n");
    }

    /// Adds a table.
    public void addTable(HtmlTable table) {
        body.table(table);
    }

    /// Adds a table that is folded away.
    public void addFoldedTable(String summary, HtmlTable table) {
        body.raw("<details>").element("summary", summary).table(table).raw("</details>\n");
    }

    /// Writes or replaces the file.
    public void write(Path file) throws IOException {
        Files.writeString(file, toHtml(), StandardCharsets.UTF_8);
    }

    /// Returns the document: the template `report.html` with its placeholders filled.
    public String toHtml() throws IOException {
        ChartLibrary library = ChartLibrary.load();
        Map<String, String> values = Map.of(
                "title", HtmlWriter.escape(title),
                "subtitle", HtmlWriter.escape(subtitle),
                "styles", ChartLibrary.readResource(RESOURCE_FOLDER + "report.css"),
                "body", body.toString(),
                "version", HtmlWriter.escape(library.version()),
                "licence", HtmlWriter.escape(library.licence().strip()),
                "figures", json(),
                "library", library.script(),
                "script", ChartLibrary.readResource(RESOURCE_FOLDER + "report.js"));
        return PLACEHOLDER
                .matcher(ChartLibrary.readResource(RESOURCE_FOLDER + "report.html"))
                .replaceAll(found -> Matcher.quoteReplacement(Objects.requireNonNull(values.get(found.group(1)))));
    }

    /// Returns the charts as JSON that cannot end the script element around it.
    private String json() {
        return JsonMapper.builder()
                .build()
                .writeValueAsString(figures)
                .replace("<", "\\u003c")
                .replace("\u2028", "\\u2028")
                .replace("\u2029", "\\u2029");
    }

    /// Returns a share of one in percent, for tables.
    static String percent(double share) {
        return String.format(Locale.ROOT, "%.2f %%", 100 * share);
    }

    /// Chart.js from the jar `org.webjars.npm:chart.js`, which contains the npm package of that name and version.
    ///
    /// @param version of the jar
    /// @param script for a page
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

        /// Reads a file of the class path.
        static String readResource(String resource) throws IOException {
            try (InputStream from = ChartLibrary.class.getClassLoader().getResourceAsStream(resource)) {
                if (from == null) {
                    throw new FileNotFoundException("not on the class path: " + resource);
                }
                return new String(from.readAllBytes(), StandardCharsets.UTF_8);
            }
        }
    }

    /// Writes the elements of the body. All text of the page is escaped here.
    private static final class HtmlWriter {

        /// The most colour behind a cell that leaves its text readable.
        private static final double MAX_HEAT_PERCENT = 42;

        private final StringBuilder html = new StringBuilder(1 << 16);

        /// Escapes a text for use between tags and inside quoted attributes.
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

        /// Appends HTML as it is.
        HtmlWriter raw(String text) {
            html.append(text);
            return this;
        }

        /// Appends an element that contains text only.
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

    /// A table, which a reader without scripts sees too.
    ///
    /// @param caption the line above it
    /// @param heads of the columns
    /// @param rows as long as the heads
    public record HtmlTable(String caption, List<String> heads, List<List<Cell>> rows) {

        /// Rows as a terminal shows them.
        static HtmlTable of(String caption, List<Column> columns, List<ResultRow> rows) {
            List<List<Cell>> lines = new ArrayList<>();
            for (ResultRow row : rows) {
                lines.add(columns.stream()
                        .map(column ->
                                new Cell(column.text(row.values().get(column.field())), !column.isKey(), 0, false))
                        .toList());
            }
            return new HtmlTable(caption, columns.stream().map(Column::head).toList(), lines);
        }

        /// One cell of a table.
        ///
        /// @param text not yet escaped
        /// @param number true to align it to the right
        /// @param heat strength of its colour, 0 to 1
        /// @param best true for the best of its column
        public record Cell(String text, boolean number, double heat, boolean best) {

            /// Returns a cell of words.
            public static Cell text(String text) {
                return new Cell(text, false, 0, false);
            }
        }
    }

    /// What a report was made by.
    ///
    /// @param command as it was typed
    /// @param version of this build
    /// @param commit of the sources, empty when it is not known
    public record ReportOrigin(String command, String version, String commit, Instant time) {

        private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm 'UTC'", Locale.ROOT)
                .withZone(ZoneOffset.UTC);

        /// The line below a report's title.
        String text() {
            return "Made by " + command + " with KVCache " + version + ", commit "
                    + (commit.isEmpty() ? "unknown" : commit) + ", on " + TIME.format(time);
        }
    }

    /// A chart, as `report.js` draws it.
    ///
    /// @param title above it, and what a screen reader says of it
    /// @param note what to know when reading it; may be empty
    /// @param form lines over a logarithmic axis, or lying bars
    /// @param axis what the values are
    /// @param labels of the places that have values: of the ticks below lines, of the rows of bars
    /// @param at where those places lie on a logarithmic axis; empty for bars
    public record Chart(
            String title,
            String note,
            ChartType form,
            Axis axis,
            List<String> labels,
            List<Double> at,
            List<Series> series) {

        /// How it looks.
        public enum ChartType {
            LINES,
            BARS,
            /// Bars of several series, one behind the end of the other.
            STACKED_BARS
        }

        /// The axis of the values.
        ///
        /// @param title with the unit
        /// @param percent whether values are shares of one, which are shown in percent
        /// @param least what lies below is cut off; null for nothing
        public record Axis(
                String title, boolean percent, @Nullable Double least) {}

        /// The role of a series, which selects its colour and weight.
        public enum SeriesRole {
            /// The reference for the others.
            BASELINE,
            /// The upper bound.
            BOUND,
            /// The subject of the chart.
            SUBJECT,
            OTHER
        }

        /// Values by place; null where there is none.
        public record Series(String name, SeriesRole role, List<@Nullable Double> values) {}
    }
}
