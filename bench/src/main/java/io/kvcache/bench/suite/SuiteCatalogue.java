package io.kvcache.bench.suite;

import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/// The suites of `kvcache bench`. Inference engines have a suite of their own: `kvcache engines bench`.
public final class SuiteCatalogue {

    private static final List<BenchmarkSuite> ALL = List.of(
            CoreSuite.suite(),
            CodecSuite.suite(),
            DiskSuite.suite(),
            LayerSuite.suite(),
            ReopenSuite.suite(),
            PolicySuite.suite());

    private SuiteCatalogue() {}

    public static List<BenchmarkSuite> all() {
        return ALL;
    }

    /// The suite with this name, if any.
    public static Optional<BenchmarkSuite> named(String name) {
        return ALL.stream().filter(suite -> suite.name().equals(name)).findFirst();
    }

    /// All names, for messages.
    public static String names() {
        return ALL.stream().map(BenchmarkSuite::name).collect(Collectors.joining(", "));
    }
}
