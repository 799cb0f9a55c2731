package io.kvcache.planner.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.planner.cli.RowPrinter.OutputFormat;
import io.kvcache.planner.report.ResultRow;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;

final class RowPrinterTest {

    private final StringWriter out = new StringWriter();

    private record Found(
            String trace, double ttftP50Seconds, @Nullable Long bytes) {}

    private record Setting(int warmupRequests) {}

    private record Twice(String trace) {}

    private static Map<String, @Nullable Object> row(Record... parts) {
        ResultRow row = new ResultRow();
        List.of(parts).forEach(row::putAll);
        return row.values();
    }

    private RowPrinter printer(OutputFormat format) {
        CommandSpec spec = CommandSpec.create();
        new CommandLine(spec).setOut(new PrintWriter(out));
        return new RowPrinter(new CommandIo(spec), format);
    }

    @Test
    void givenRecordsSideBySide_whenPrintedAsCsv_thenOneHeadAndAllDigits() {
        RowPrinter printer = printer(OutputFormat.CSV);
        printer.print(row(new Found("a", 1 / 3.0, 5L), new Setting(7)));
        printer.print(row(new Found("b", 2, null), new Setting(8)));
        assertThat(out.toString().lines())
                .containsExactly(
                        "trace,ttft_p50_seconds,bytes,warmup_requests", "a,0.3333333333333333,5,7", "b,2.0,,8");
    }

    @Test
    void givenRowsOfOtherColumns_whenPrintedAsCsv_thenTheyHaveAHeadOfTheirOwn() {
        RowPrinter printer = printer(OutputFormat.CSV);
        printer.print(row(new Setting(7)));
        printer.print(row(new Twice("a")));
        assertThat(out.toString().lines()).containsExactly("warmup_requests", "7", "trace", "a");
    }

    @Test
    void givenNamesWithSigns_whenPrintedAsCsv_thenTheyStandInQuotes() {
        printer(OutputFormat.CSV).print(row(new Twice("a,\"b\"\n.jsonl")));
        assertThat(out.toString()).isEqualTo("trace\n\"a,\"\"b\"\"\n.jsonl\"\n");
    }

    @Test
    void givenARow_whenPrintedAsJson_thenOneObjectWithTheNamesOfTheFields() {
        printer(OutputFormat.JSON).print(row(new Found("a", 0.5, null), new Setting(7)));
        assertThat(out.toString())
                .isEqualTo("{\"trace\":\"a\",\"ttftP50Seconds\":0.5,\"bytes\":null,\"warmupRequests\":7}\n");
    }

    @Test
    void givenTwoColumnsOfOneName_whenPrinted_thenRefused() {
        RowPrinter printer = printer(OutputFormat.JSON);
        assertThatThrownBy(() -> printer.print(row(new Found("a", 1, 1L), new Twice("b"))))
                .hasMessage("two columns have the name trace");
    }
}
