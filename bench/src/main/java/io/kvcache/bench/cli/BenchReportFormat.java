package io.kvcache.bench.cli;

import io.kvcache.bench.suite.Answer;
import io.kvcache.bench.suite.Suite;
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
    String format(Suite suite, List<Answer> answers);

    /// An aligned table for people.
    record TextTable() implements BenchReportFormat {

        private static final String ROW = "%-18s %10s %-10s  %-24s %10s %7s  %-14s %s%n";

        @Override
        public String format(Suite suite, List<Answer> answers) {
            StringBuilder text = new StringBuilder(
                    String.format(Locale.ROOT, ROW, suite.name(), "", "", "against", "", "ratio", "budget", ""));
            for (Answer benchResult : answers) {
                text.append(String.format(
                        Locale.ROOT,
                        ROW,
                        benchResult.question().name(),
                        number(benchResult.value()),
                        benchResult.question().unit(),
                        benchResult.question().against().name(),
                        number(benchResult.againstValue()),
                        number(benchResult.ratio()),
                        benchResult.question().budget().describe(),
                        verdict(benchResult)));
            }
            return text.append(legend(answers)).toString();
        }
    }

    /// One JSON object a line, for programs.
    record JsonLines() implements BenchReportFormat {
        @Override
        public String format(Suite suite, List<Answer> answers) {
            StringBuilder text = new StringBuilder();
            answers.forEach(benchResult ->
                    text.append(BenchResultJson.of(benchResult).toJson()).append('\n'));
            return text.toString();
        }
    }

    /// A table for a document, with the questions in full.
    record MarkdownTable() implements BenchReportFormat {
        @Override
        public String format(Suite suite, List<Answer> answers) {
            StringBuilder text = new StringBuilder("| question | value | against | ratio | budget | |\n");
            text.append("|---|---|---|---|---|---|\n");
            for (Answer benchResult : answers) {
                text.append(String.format(
                        Locale.ROOT,
                        "| **%s** %s | %s %s | %s: %s | %s | %s | %s |%n",
                        benchResult.question().name(),
                        benchResult.question().text(),
                        number(benchResult.value()),
                        benchResult.question().unit(),
                        benchResult.question().against().name(),
                        number(benchResult.againstValue()),
                        number(benchResult.ratio()),
                        benchResult.question().budget().describe(),
                        verdict(benchResult)));
            }
            return text.append('\n').append(legend(answers)).toString();
        }
    }

    /// What the figures are, as the ratio is not always the quotient of the two beside it, and how bytes
    /// travelled.
    private static String legend(List<Answer> answers) {
        IntSummaryStatistics rounds = answers.stream().mapToInt(Answer::runs).summaryStatistics();
        boolean same = rounds.getMin() == rounds.getMax();
        StringBuilder text = new StringBuilder(String.format(
                Locale.ROOT,
                "Medians of rounds: %s. A ratio is the median of the rounds' own.%n",
                same ? rounds.getMax() : rounds.getMin() + " to " + rounds.getMax()));
        Map<String, List<String>> paths = new LinkedHashMap<>();
        answers.stream()
                .filter(benchResult -> !benchResult.path().isEmpty())
                .forEach(benchResult -> paths.computeIfAbsent(benchResult.path(), _ -> new ArrayList<>())
                        .add(benchResult.question().name()));
        paths.forEach((path, names) ->
                text.append(String.format(Locale.ROOT, "%nBy %s: %s.%n", path, String.join(", ", names))));
        return text.toString();
    }

    private static String verdict(Answer benchResult) {
        return benchResult.ok() ? "ok" : "MISSED";
    }

    /// Three digits or so.
    private static String number(double value) {
        String form = value >= 100 ? "%,.0f" : value >= 10 ? "%.1f" : value >= 0.01 || value == 0 ? "%.2f" : "%.1e";
        return String.format(Locale.ROOT, form, value);
    }
}
