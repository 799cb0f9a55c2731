package io.kvcache.bench.cli;

import io.kvcache.bench.suite.BenchResult;
import io.kvcache.bench.suite.BenchmarkSuite;
import io.kvcache.bench.suite.MachineInfo;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.Model.CommandSpec;

/// Writes what a suite answered into a folder, beside what it was measured on: a page to read and lines to compare.
///
/// @param folder made when it is missing
/// @param command as it was typed
record BenchResultWriter(Path folder, String command) {

    private static final Path RECORDS = Path.of("bench", "results");

    /// Writes what a command that was just typed has found, today, where all records of this checkout are.
    ///
    /// @return the page
    static Path write(CommandSpec spec, BenchmarkSuite suite, List<BenchResult> answers) throws IOException {
        String typed = "kvcache "
                + String.join(" ", spec.root().commandLine().getParseResult().originalArgs());
        return new BenchResultWriter(RECORDS, typed).write(suite, answers, LocalDate.now(ZoneId.systemDefault()));
    }

    /// Writes the page, and the lines beside it with `.jsonl` in place of `.md`.
    ///
    /// @return the page
    Path write(BenchmarkSuite suite, List<BenchResult> answers, LocalDate day) throws IOException {
        Files.createDirectories(folder);
        MachineInfo machineInfo = MachineInfo.current();
        String name = suite.name() + "-" + day + (machineInfo.commit().isEmpty() ? "" : "-" + machineInfo.commit());
        Path page = folder.resolve(name + ".md");
        String head = String.format(
                Locale.ROOT,
                "# %s: %s%n%n- %s%n- %s%n- load %s%n- commit %s, %s%n- `%s`%n%n",
                suite.name(),
                suite.title(),
                machineInfo.hardware(),
                machineInfo.software(),
                machineInfo.load(),
                machineInfo.commit().isEmpty() ? "unknown" : machineInfo.commit(),
                day,
                command);
        Files.writeString(page, head + new BenchReportFormat.MarkdownTable().format(suite, answers));
        Files.writeString(folder.resolve(name + ".jsonl"), new BenchReportFormat.JsonLines().format(suite, answers));
        return page;
    }
}
