package io.kvcache.bench.figure;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Consumer;

/// Figures that are measured by one command, `kvcache bench NAME`. [FigureBudgets] judges them.
///
/// @param name as on the command line
/// @param figures names of its figures, which `--filter` looks at; empty where it measures by parts
/// @param parts names that `--part` takes; empty where there are none
public record Suite(String name, String title, List<String> figures, List<String> parts, Measurement measurement) {

    /// Measures a suite.
    @FunctionalInterface
    public interface Measurement {

        /// Returns the figures that a run asks for.
        ///
        /// @throws IOException when a file, a process or a connection fails, or a tool is not installed
        List<Figure> measure(Run run) throws IOException, InterruptedException;
    }

    /// What a run measures, and how long.
    ///
    /// @param quick one short round, which shows failures and not speed
    /// @param filter text in the names of the figures that are wanted; empty for all
    /// @param parts that are wanted; empty for all
    /// @param folder for files; used by the suites that write some
    /// @param progress is told what is about to run
    public record Run(boolean quick, String filter, Set<String> parts, Path folder, Consumer<String> progress) {

        /// A run of a suite without parts and files.
        public static Run of(boolean quick, String filter, Consumer<String> progress) {
            return new Run(quick, filter, Set.of(), Path.of(""), progress);
        }

        /// Returns whether a figure is wanted.
        public boolean wants(String figure) {
            return figure.contains(filter.toLowerCase(Locale.ROOT));
        }

        /// Returns whether a part is wanted.
        public boolean wantsPart(String part) {
            return parts.isEmpty() || parts.contains(part);
        }

        /// Returns one of two numbers of rounds.
        public int rounds(int full) {
            return quick ? 1 : full;
        }
    }
}
