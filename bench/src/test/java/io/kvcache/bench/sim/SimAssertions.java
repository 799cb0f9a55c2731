package io.kvcache.bench.sim;

import java.util.function.Supplier;

/// Assertions of a simulation, which hold whether or not the JVM has assertions on.
final class SimAssertions {

    private SimAssertions() {}

    /// @throws AssertionError that says what does not hold
    static void require(boolean holds, Supplier<String> what) {
        if (!holds) {
            throw new AssertionError(what.get());
        }
    }
}
