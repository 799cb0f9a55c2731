package io.kvcache.bench.cli;

import io.kvcache.bench.report.HtmlReport;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;

/// The option that asks for a report with charts beside what a command prints.
final class HtmlReportOption {

    @Option(
            names = "--html",
            paramLabel = "FILE",
            description = "Also a report with charts and tables: one HTML file that loads nothing.")
    private @Nullable Path file;

    /// Looks whether the file can be there before hours are spent on what it shows.
    ///
    /// @throws IllegalArgumentException when it cannot
    void checkWritable() {
        if (file != null) {
            Path folder = file.toAbsolutePath().getParent();
            if (folder == null || !Files.isWritable(folder) || Files.isDirectory(file)) {
                throw ReplayOptions.invalidOption(
                        "--html", file.toString(), "a file in a folder that can be written to");
            }
        }
    }

    /// Writes the page when one was asked for.
    void write(Supplier<HtmlReport> page) throws IOException {
        if (file != null) {
            page.get().write(file);
        }
    }

    /// How the command was called, for the page's head.
    static String commandLine(CommandSpec spec) {
        return "./kvcache "
                + String.join(" ", spec.root().commandLine().getParseResult().originalArgs());
    }
}
