package io.kvcache.bench.cli;

import com.fasterxml.jackson.annotation.JsonInclude;
import io.kvcache.bench.suite.BenchmarkSuite;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.MachineInfo;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.IntSummaryStatistics;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import tools.jackson.databind.json.JsonMapper;

/// The answers of a suite as text. Lines end with a line feed.
///
/// @param suite that was run
/// @param answers its results, in the order of the questions
record BenchReport(BenchmarkSuite suite, List<BenchResult> answers) {

    private static final Path RECORDS = Path.of("bench", "results");
    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final String ROW = "%-22s %10s %-10s  %-24s %10s %7s  %-14s %s%n";

    /// The fields of a line of `bench --json`. Their names are what programs rely on.
    ///
    /// @param path only where bytes travelled through a device
    private record JsonLine(
            String name,
            double value,
            String unit,
            String against,
            double againstValue,
            double ratio,
            String budget,
            boolean ok,
            int runs,
            @JsonInclude(JsonInclude.Include.NON_EMPTY) String path) {}

    /// A report on a suite that has the answers' questions.
    static BenchReport of(String name, String title, List<BenchResult> answers) {
        return new BenchReport(
                new BenchmarkSuite(
                        name, title, answers.stream().map(BenchResult::spec).toList()),
                answers);
    }

    /// An aligned table for people.
    String toTable() {
        StringBuilder text = new StringBuilder(format(ROW, suite.name(), "", "", "against", "", "ratio", "budget", ""));
        for (BenchResult answer : answers) {
            text.append(format(
                    ROW,
                    answer.spec().name(),
                    number(answer.value()),
                    answer.spec().unit(),
                    answer.spec().reference().name(),
                    number(answer.referenceValue()),
                    number(answer.ratio()),
                    answer.spec().threshold().describe(),
                    verdict(answer)));
        }
        return text.append(legend()).toString();
    }

    /// One JSON object a line, for programs.
    String toJsonLines() {
        StringBuilder text = new StringBuilder();
        for (BenchResult answer : answers) {
            JsonLine line = new JsonLine(
                    answer.spec().name(),
                    answer.value(),
                    answer.spec().unit(),
                    answer.spec().reference().name(),
                    answer.referenceValue(),
                    answer.ratio(),
                    answer.spec().threshold().describe(),
                    answer.isWithinThreshold(),
                    answer.runs(),
                    answer.path());
            text.append(JSON.writeValueAsString(line)).append('\n');
        }
        return text.toString();
    }

    /// A table for a document, with the questions in full.
    String toMarkdown() {
        StringBuilder text =
                new StringBuilder("| question | value | against | ratio | budget | |\n|---|---|---|---|---|---|\n");
        for (BenchResult answer : answers) {
            text.append(format(
                    "| **%s** %s | %s %s | %s: %s | %s | %s | %s |%n",
                    answer.spec().name(),
                    answer.spec().text(),
                    number(answer.value()),
                    answer.spec().unit(),
                    answer.spec().reference().name(),
                    number(answer.referenceValue()),
                    number(answer.ratio()),
                    answer.spec().threshold().describe(),
                    verdict(answer)));
        }
        return text.append('\n').append(legend()).toString();
    }

    /// Writes a page to read and lines to compare under `bench/results`, beside what was measured on.
    ///
    /// @param command as it was typed
    /// @return the page; the lines are beside it, with `.jsonl` in place of `.md`
    Path record(String command) throws IOException {
        Files.createDirectories(RECORDS);
        LocalDate day = LocalDate.now(ZoneId.systemDefault());
        MachineInfo machine = MachineInfo.current();
        String name = suite.name() + "-" + day + (machine.commit().isEmpty() ? "" : "-" + machine.commit());
        Path page = RECORDS.resolve(name + ".md");
        String head = format(
                "# %s: %s%n%n- %s%n- %s%n- load %s%n- commit %s, %s%n- `%s`%n%n",
                suite.name(),
                suite.title(),
                machine.hardware(),
                machine.software(),
                machine.load(),
                machine.commit().isEmpty() ? "unknown" : machine.commit(),
                day,
                command);
        Files.writeString(page, head + toMarkdown());
        Files.writeString(RECORDS.resolve(name + ".jsonl"), toJsonLines());
        return page;
    }

    boolean isWithinThresholds() {
        return answers.stream().allMatch(BenchResult::isWithinThreshold);
    }

    /// Explains the figures, as the ratio is not always the quotient of the two beside it, and how bytes travelled.
    private String legend() {
        IntSummaryStatistics rounds =
                answers.stream().mapToInt(BenchResult::runs).summaryStatistics();
        StringBuilder text = new StringBuilder(format(
                "Medians of rounds: %s. A ratio is the median of the rounds' own.%n",
                rounds.getMin() == rounds.getMax() ? rounds.getMax() : rounds.getMin() + " to " + rounds.getMax()));
        Map<String, List<String>> paths = new LinkedHashMap<>();
        answers.stream()
                .filter(answer -> !answer.path().isEmpty())
                .forEach(answer -> paths.computeIfAbsent(answer.path(), _ -> new ArrayList<>())
                        .add(answer.spec().name()));
        paths.forEach((path, names) -> text.append(format("%nBy %s: %s.%n", path, String.join(", ", names))));
        return text.toString();
    }

    private static String verdict(BenchResult answer) {
        return answer.isWithinThreshold() ? "ok" : "MISSED";
    }

    /// Three digits or so.
    private static String number(double value) {
        String form = value >= 100 ? "%,.0f" : value >= 10 ? "%.1f" : value >= 0.01 || value == 0 ? "%.2f" : "%.1e";
        return format(form, value);
    }

    @SuppressWarnings("AnnotateFormatMethod") // the annotation lives in a library that nothing else here needs
    private static String format(String form, Object... values) {
        return String.format(Locale.ROOT, form, values);
    }
}
