package io.kvcache.bench.suite;

import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/// The suites there are.
public final class SuiteCatalogue {

    private static final List<Suite> ALL = List.of(
            CoreSuite.suite(), DiskSuite.suite(), ReopenSuite.suite(), EngineSuite.suite(), PolicySuite.suite());

    private SuiteCatalogue() {}

    public static List<Suite> all() {
        return ALL;
    }

    /// The suite with this name, if any.
    public static Optional<Suite> named(String name) {
        return ALL.stream().filter(suite -> suite.name().equals(name)).findFirst();
    }

    /// All names, for messages.
    public static String names() {
        return ALL.stream().map(Suite::name).collect(Collectors.joining(", "));
    }
}
