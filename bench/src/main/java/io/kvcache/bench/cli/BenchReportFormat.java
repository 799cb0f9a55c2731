package io.kvcache.bench.cli;

import io.kvcache.bench.suite.BenchResult;
import io.kvcache.bench.suite.BenchmarkSuite;
import java.util.ArrayList;
import java.util.IntSummaryStatistics;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/// What a suite answered, as text.
sealed interface BenchReportFormat
        permits BenchReportFormat.TextTable, BenchReportFormat.JsonLines, BenchReportFormat.MarkdownTable {

    /// The whole report, lines ended by a line feed.
    String format(BenchmarkSuite suite, List<BenchResult> answers);

    /// An aligned table for people.
    record TextTable() implements BenchReportFormat {

        private static final String ROW = "%-18s %10s %-10s  %-24s %10s %7s  %-14s %s%n";

        @Override
        public String format(BenchmarkSuite suite, List<BenchResult> answers) {
            StringBuilder text = new StringBuilder(
                    String.format(Locale.ROOT, ROW, suite.name(), "", "", "against", "", "ratio", "budget", ""));
            for (BenchResult benchResult : answers) {
                text.append(String.format(
                        Locale.ROOT,
                        ROW,
                        benchResult.spec().name(),
                        number(benchResult.value()),
                        benchResult.spec().unit(),
                        benchResult.spec().reference().name(),
                        number(benchResult.referenceValue()),
                        number(benchResult.ratio()),
                        benchResult.spec().threshold().describe(),
                        verdict(benchResult)));
            }
            return text.append(legend(answers)).toString();
        }
    }

    /// One JSON object a line, for programs.
    record JsonLines() implements BenchReportFormat {
        @Override
        public String format(BenchmarkSuite suite, List<BenchResult> answers) {
            StringBuilder text = new StringBuilder();
            answers.forEach(benchResult ->
                    text.append(BenchResultJson.of(benchResult).toJson()).append('\n'));
            return text.toString();
        }
    }

    /// A table for a document, with the questions in full.
    record MarkdownTable() implements BenchReportFormat {
        @Override
        public String format(BenchmarkSuite suite, List<BenchResult> answers) {
            StringBuilder text = new StringBuilder("| question | value | against | ratio | budget | |\n");
            text.append("|---|---|---|---|---|---|\n");
            for (BenchResult benchResult : answers) {
                text.append(String.format(
                        Locale.ROOT,
                        "| **%s** %s | %s %s | %s: %s | %s | %s | %s |%n",
                        benchResult.spec().name(),
                        benchResult.spec().text(),
                        number(benchResult.value()),
                        benchResult.spec().unit(),
                        benchResult.spec().reference().name(),
                        number(benchResult.referenceValue()),
                        number(benchResult.ratio()),
                        benchResult.spec().threshold().describe(),
                        verdict(benchResult)));
            }
            return text.append('\n').append(legend(answers)).toString();
        }
    }

    /// What the figures are, as the ratio is not always the quotient of the two beside it, and how bytes
    /// travelled.
    private static String legend(List<BenchResult> answers) {
        IntSummaryStatistics rounds =
                answers.stream().mapToInt(BenchResult::runs).summaryStatistics();
        boolean same = rounds.getMin() == rounds.getMax();
        StringBuilder text = new StringBuilder(String.format(
                Locale.ROOT,
                "Medians of rounds: %s. A ratio is the median of the rounds' own.%n",
                same ? rounds.getMax() : rounds.getMin() + " to " + rounds.getMax()));
        Map<String, List<String>> paths = new LinkedHashMap<>();
        answers.stream()
                .filter(benchResult -> !benchResult.path().isEmpty())
                .forEach(benchResult -> paths.computeIfAbsent(benchResult.path(), _ -> new ArrayList<>())
                        .add(benchResult.spec().name()));
        paths.forEach((path, names) ->
                text.append(String.format(Locale.ROOT, "%nBy %s: %s.%n", path, String.join(", ", names))));
        return text.toString();
    }

    private static String verdict(BenchResult benchResult) {
        return benchResult.isWithinThreshold() ? "ok" : "MISSED";
    }

    /// Three digits or so.
    private static String number(double value) {
        String form = value >= 100 ? "%,.0f" : value >= 10 ? "%.1f" : value >= 0.01 || value == 0 ? "%.2f" : "%.1e";
        return String.format(Locale.ROOT, form, value);
    }
}
