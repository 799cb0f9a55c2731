package io.kvcache.bench.cli;

import java.lang.reflect.RecordComponent;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
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

    /// Prints a row of records.
    void print(Record... parts) {
        print(values(parts));
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

    /// Returns the components of all records by name, in their order.
    static Map<String, @Nullable Object> values(Record... parts) {
        Map<String, @Nullable Object> values = new LinkedHashMap<>();
        addAll(values, parts);
        return values;
    }

    /// Adds the components of records behind other values.
    static void addAll(Map<String, @Nullable Object> values, Record... parts) {
        for (Record part : parts) {
            for (RecordComponent component : part.getClass().getRecordComponents()) {
                if (values.containsKey(component.getName())) {
                    throw new IllegalArgumentException("two columns have the name " + component.getName());
                }
                values.put(component.getName(), value(part, component));
            }
        }
    }

    private static @Nullable Object value(Record part, RecordComponent component) {
        try {
            component.getAccessor().setAccessible(true); // records of commands are not public
            return component.getAccessor().invoke(part);
        } catch (ReflectiveOperationException failed) {
            throw new IllegalStateException("cannot read " + component, failed);
        }
    }

    private void printCsv(Map<String, @Nullable Object> values) {
        List<String> own = values.keySet().stream().map(RowPrinter::csvName).toList();
        if (!own.equals(names)) {
            names = own;
            io.println(String.join(",", names));
        }
        io.println(values.values().stream().map(RowPrinter::csvValue).collect(Collectors.joining(",")));
    }

    /// Returns the name of a column of CSV: `ttftP50Seconds` becomes `ttft_p50_seconds`.
    static String csvName(String component) {
        return component.replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
    }

    private static String csvValue(@Nullable Object value) {
        String text = value == null ? "" : value.toString();
        boolean plain = text.chars().noneMatch(c -> c == ',' || c == '"' || c == '\n' || c == '\r');
        return plain ? text : '"' + text.replace("\"", "\"\"") + '"';
    }
}
