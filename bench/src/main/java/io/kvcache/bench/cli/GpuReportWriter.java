package io.kvcache.bench.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;

/// Where figures of a GPU go, each as soon as it is there, so that a run that is cut off loses
/// none: to a table for people, to lines of JSON, or to both by one measurement.
final class GpuReportWriter implements AutoCloseable {

    private static final JsonMapper JSON = JsonMapper.builder().build();

    private final List<PrintWriter> tables = new ArrayList<>();
    private final List<PrintWriter> lines = new ArrayList<>();
    private final @Nullable PrintWriter opened;

    /// @param json whether lines are wanted in the table's place
    /// @param file where lines go too, or null for nowhere
    /// @throws IOException when the file cannot be written to
    GpuReportWriter(PrintWriter out, boolean json, @Nullable Path file) throws IOException {
        (json ? lines : tables).add(out);
        opened = file == null ? null : new PrintWriter(Files.newBufferedWriter(file));
        if (opened != null) {
            lines.add(opened);
        }
    }

    /// A row of the table.
    void printRow(String text) {
        tables.forEach(table -> print(table, text));
    }

    /// A line of JSON.
    void printJson(Object value) {
        lines.forEach(to -> print(to, JSON.writeValueAsString(value)));
    }

    /// Whether the file has not all lines: its disk is full, for one.
    boolean hasWriteErrors() {
        return opened != null && opened.checkError();
    }

    static void print(PrintWriter to, String text) {
        to.println(text);
        to.flush();
    }

    @Override
    public void close() {
        if (opened != null) {
            opened.close();
        }
    }
}
