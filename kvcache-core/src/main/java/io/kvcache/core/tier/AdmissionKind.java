package io.kvcache.core.tier;

import java.util.Arrays;
import java.util.Optional;
import java.util.stream.Collectors;

/// Which blocks are worth a write to disk.
public enum AdmissionKind {
    /// Every block, as soon as it is sealed: most hits, most wear.
    ALWAYS("always"),
    /// A block that was used again, or put again after it had been evicted: most of the hits for a fraction
    /// of the writes, since most blocks are never used again.
    SECOND_HIT("second-hit");

    private final String commandName;

    AdmissionKind(String commandName) {
        this.commandName = commandName;
    }

    /// Name in configuration and on command lines.
    public String commandName() {
        return commandName;
    }

    /// The kind with this name, if any.
    public static Optional<AdmissionKind> named(String name) {
        return Arrays.stream(values())
                .filter(kind -> kind.commandName.equals(name))
                .findFirst();
    }

    /// All names, for messages.
    public static String names() {
        return Arrays.stream(values()).map(AdmissionKind::commandName).collect(Collectors.joining(", "));
    }
}
