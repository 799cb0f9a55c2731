package io.kvcache.server;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;

/// Says once a minute what went wrong in that minute, a line each. Nothing is said of a minute in which nothing did.
///
/// The same counts are metrics; whoever is called at night reads the log first.
///
/// **Threads.** One at a time, after all was added.
final class ProblemDigest implements Runnable {

    static final long INTERVAL_MILLIS = 60_000;

    private static final Logger LOG = System.getLogger(ProblemDigest.class.getName());

    private final List<WatchedCounter> all = new ArrayList<>();

    private static final class WatchedCounter {
        private final String description;
        private final LongSupplier count;
        private long previousCount;

        WatchedCounter(String description, LongSupplier count) {
            this.description = description;
            this.count = count;
            previousCount = count.getAsLong();
        }
    }

    /// Adds something to be told of.
    ///
    /// @param description goes on after a number: `values of tenant blue found no room`
    /// @param count of all since the start
    void watch(String description, LongSupplier count) {
        all.add(new WatchedCounter(description, count));
    }

    /// What there is to say since the last time.
    List<String> newProblems() {
        List<String> lines = new ArrayList<>();
        for (WatchedCounter each : all) {
            long now = each.count.getAsLong();
            if (now > each.previousCount) {
                lines.add(now - each.previousCount + " " + each.description);
            }
            each.previousCount = now;
        }
        return lines;
    }

    @Override
    public void run() {
        newProblems().forEach(line -> LOG.log(Level.WARNING, "In the last minute " + line));
    }
}
