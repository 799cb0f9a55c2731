package io.kvcache.planner.cli;

import io.kvcache.planner.report.Column;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Prints rows for programs: one JSON object a line, or comma-separated values as in RFC 4180.
///
/// A row is one or several records side by side, and a column is one of their components. JSON has the names in
/// camel case, CSV in lower case with underscores. CSV starts with a line of names, and has another where the
/// columns change. Numbers have all digits, and a null is null in JSON and empty in CSV.
final class RowPrinter {

    private final CommandIo io;
    private final OutputFormat format;
    private List<String> names = List.of();

    /// How a command prints its rows.
    enum OutputFormat {
        /// A table for people.
        TEXT,
        JSON,
        CSV
    }

    RowPrinter(CommandIo io, OutputFormat format) {
        this.io = io;
        this.format = format;
    }

    /// Returns whether the command prints a table for people, and gives this printer nothing.
    boolean isText() {
        return format == OutputFormat.TEXT;
    }

    /// Prints a row of values by their names.
    ///
    /// @throws IllegalStateException when the command prints text
    void print(Map<String, @Nullable Object> values) {
        switch (format) {
            case JSON -> io.printJson(values);
            case CSV -> printCsv(values);
            case TEXT -> throw new IllegalStateException("a row for programs, where the format is text");
        }
    }

    private void printCsv(Map<String, @Nullable Object> values) {
        List<String> own = values.keySet().stream().map(Column::csvName).toList();
        if (!own.equals(names)) {
            names = own;
            io.println(String.join(",", names));
        }
        io.println(values.values().stream().map(RowPrinter::csvValue).collect(Collectors.joining(",")));
    }

    private static String csvValue(@Nullable Object value) {
        String text = value == null ? "" : value.toString();
        boolean plain = text.chars().noneMatch(c -> c == ',' || c == '"' || c == '\n' || c == '\r');
        return plain ? text : '"' + text.replace("\"", "\"\"") + '"';
    }
}
