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
final class MinuteReport implements Runnable {

    static final long MILLIS = 60_000;

    private static final Logger LOG = System.getLogger(MinuteReport.class.getName());

    private final List<Watched> all = new ArrayList<>();

    private static final class Watched {
        private final String what;
        private final LongSupplier count;
        private long before;

        Watched(String what, LongSupplier count) {
            this.what = what;
            this.count = count;
            before = count.getAsLong();
        }
    }

    /// Adds something to be told of.
    ///
    /// @param what goes on after a number: `values of tenant blue found no room`
    /// @param count of all since the start
    void add(String what, LongSupplier count) {
        all.add(new Watched(what, count));
    }

    /// What there is to say since the last time.
    List<String> lines() {
        List<String> lines = new ArrayList<>();
        for (Watched each : all) {
            long now = each.count.getAsLong();
            if (now > each.before) {
                lines.add(now - each.before + " " + each.what);
            }
            each.before = now;
        }
        return lines;
    }

    @Override
    public void run() {
        lines().forEach(line -> LOG.log(Level.WARNING, "In the last minute " + line));
    }
}
