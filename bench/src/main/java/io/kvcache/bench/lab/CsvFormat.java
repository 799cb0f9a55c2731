package io.kvcache.bench.lab;

import java.lang.reflect.RecordComponent;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/// Public records as comma-separated values, as RFC 4180 has them: a text with a comma, a quote or a line's end
/// in it stands in quotes.
final class CsvFormat {

    private CsvFormat() {}

    /// The components' names, in lower case with underscores.
    static String head(Class<? extends Record> type) {
        return Arrays.stream(type.getRecordComponents())
                .map(each -> each.getName().replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT))
                .collect(Collectors.joining(","));
    }

    /// The components' values.
    static String line(Record row) {
        return Arrays.stream(row.getClass().getRecordComponents())
                .map(each -> quoted(String.valueOf(value(row, each))))
                .collect(Collectors.joining(","));
    }

    private static Object value(Record row, RecordComponent component) {
        try {
            return component.getAccessor().invoke(row);
        } catch (ReflectiveOperationException hidden) {
            throw new IllegalArgumentException(row.getClass() + " is not a public record", hidden);
        }
    }

    private static String quoted(String text) {
        boolean plain = text.chars().noneMatch(c -> c == ',' || c == '"' || c == '\n' || c == '\r');
        return plain ? text : '"' + text.replace("\"", "\"\"") + '"';
    }
}
