package io.kvcache.bench.report;

import java.util.List;
import java.util.Locale;

/// HTML, piece by piece. Every text that comes in is escaped here and nowhere else.
final class HtmlWriter {

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
        int rows = chart.form() == Chart.ChartType.LINES ? 0 : chart.labels().size();
        return raw("</figcaption><div class=plot")
                .raw(rows == 0 ? "" : " style=\"--rows:" + rows + "\"")
                .raw("><canvas data-figure=" + index + " role=img aria-label=\"")
                .raw(escape(chart.title()))
                .raw("\"></canvas></div></figure>\n");
    }

    HtmlWriter table(HtmlTable table) {
        raw("<div class=scroll><table>").element("caption", table.caption()).raw("<thead><tr>");
        for (int i = 0; i < table.heads().size(); i++) {
            boolean number =
                    !table.rows().isEmpty() && table.rows().getFirst().get(i).number();
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
