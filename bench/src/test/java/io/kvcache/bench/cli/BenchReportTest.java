package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import io.kvcache.bench.suite.MetricSource;
import io.kvcache.bench.suite.Threshold;
import java.util.List;
import org.junit.jupiter.api.Test;

final class BenchReportTest {

    private static final MetricSource FIO = new MetricSource.ConstantMetric("fio io_uring", () -> 0);

    private static BenchResult answer(String name, double ratio, int runs, String path) {
        Threshold threshold = new Threshold.RatioAtLeast(0.8);
        return new BenchResult(
                new BenchmarkSpec(name, "How fast?", "GB/s", FIO, FIO, threshold), 3.5, 7, ratio, runs, path);
    }

    private static BenchReport report(BenchResult... answers) {
        return BenchReport.of("disk", "title", List.of(answers));
    }

    @Test
    void givenAnswers_whenTabled_thenRatioBudgetAndVerdictStandInALine() {
        assertThat(report(answer("one", 0.5, 15, "")).toTable().lines())
                .anyMatch(line -> line.matches("one +3.50 GB/s +fio io_uring +7.00 +0.50 +ratio >= 0.80 +MISSED"))
                .contains("Medians of rounds: 15. A ratio is the median of the rounds' own.")
                .noneMatch(line -> line.startsWith("By "));
    }

    @Test
    void givenSomeMeasuredLessOftenByAnotherPath_whenTabled_thenTheLegendSaysSo() {
        String table = report(
                        answer("one", 1, 15, "io_uring"),
                        answer("two", 1, 7, "8 threads"),
                        answer("three", 1, 15, "io_uring"))
                .toTable();
        assertThat(table.lines().toList())
                .anyMatch(line -> line.startsWith("Medians of rounds: 7 to 15."))
                .contains("By io_uring: one, three.", "By 8 threads: two.");
    }

    @Test
    void givenPath_whenWrittenAsJson_thenItHasAFieldWhereThereIsOne() {
        String lines = report(answer("one", 1, 15, "io_uring"), answer("two", 1, 15, ""))
                .toJsonLines();
        assertThat(lines.lines())
                .satisfiesExactly(
                        first -> assertThat(first).contains("\"path\":\"io_uring\""),
                        second -> assertThat(second).doesNotContain("path"));
    }
}
