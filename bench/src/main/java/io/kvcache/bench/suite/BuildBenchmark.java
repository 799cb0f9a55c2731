package io.kvcache.bench.suite;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/// Measures that two builds can be compared by, the same for both and close in time.
public interface BuildBenchmark {

    /// As on the command line.
    String suiteName();

    /// The names of all cells, in the order of measuring.
    List<String> cellNames();

    /// Measures some cells in both builds, each cell in one right after the other.
    ///
    /// @param newFirst the order within each cell; it changes from pair to pair
    /// @param progress told what is about to run
    /// @return speed of the new build by speed of the old one, by cell; without cells that a build does not have
    /// @throws IOException when a build cannot be run
    Map<String, Double> measurePair(
            Build older, Build newer, boolean newFirst, Set<String> cells, Consumer<String> progress)
            throws IOException, InterruptedException;
}
