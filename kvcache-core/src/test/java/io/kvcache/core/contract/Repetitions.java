package io.kvcache.core.contract;

/// How many seeds, frames or rounds a test runs: few in a usual run, many in `./kvcache test --full`.
public final class Repetitions {

    private static final boolean FULL = Boolean.getBoolean("kvcache.full");

    private Repetitions() {}

    /// The number that a property sets, or else that for this run.
    ///
    /// @param property a system property that sets the number for any run
    public static int of(String property, int usual, int full) {
        return Integer.getInteger(property, usualOrFull(usual, full));
    }

    /// The number for this run.
    public static int usualOrFull(int usual, int full) {
        return FULL ? full : usual;
    }
}
