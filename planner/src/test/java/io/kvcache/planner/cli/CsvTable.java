package io.kvcache.planner.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// What a command printed as CSV without quoted values.
///
/// @param columns names in the first line
/// @param rows values by the name of their column
record CsvTable(List<String> columns, List<Map<String, String>> rows) {

    static CsvTable parse(String text) {
        List<String> lines = text.lines().toList();
        List<String> columns = cells(lines.getFirst());
        List<Map<String, String>> rows = new ArrayList<>();
        for (String line : lines.subList(1, lines.size())) {
            List<String> cells = cells(line);
            assertThat(cells).as(line).hasSameSizeAs(columns);
            Map<String, String> row = new LinkedHashMap<>();
            for (int i = 0; i < cells.size(); i++) {
                row.put(columns.get(i), cells.get(i));
            }
            rows.add(row);
        }
        return new CsvTable(columns, rows);
    }

    private static List<String> cells(String line) {
        assertThat(line).doesNotContain("\"");
        return Arrays.asList(line.split(",", -1));
    }

    /// The values of one column.
    List<String> column(String name) {
        assertThat(columns).contains(name);
        return rows.stream().map(row -> row.getOrDefault(name, "")).toList();
    }

    /// The values of one column as numbers.
    List<Double> numbers(String name) {
        return column(name).stream().map(Double::valueOf).toList();
    }
}
