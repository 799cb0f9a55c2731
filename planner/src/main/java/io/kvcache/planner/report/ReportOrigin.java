package io.kvcache.planner.report;

import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/// What a report was made by.
///
/// @param command as it was typed
/// @param version of this build
/// @param commit of the sources, empty when it is not known
public record ReportOrigin(String command, String version, String commit, Instant time) {

    private static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm 'UTC'", Locale.ROOT).withZone(ZoneOffset.UTC);

    /// The line below a report's title.
    String text() {
        return "Made by " + command + " with KVCache " + version + ", commit " + (commit.isEmpty() ? "unknown" : commit)
                + ", on " + TIME.format(time);
    }
}
