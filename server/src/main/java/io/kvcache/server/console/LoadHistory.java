package io.kvcache.server.console;

import io.kvcache.core.CacheStats;
import io.kvcache.server.console.LoadTotals.LoadSample;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// The load of the last hours, in memory: a sample of the whole server each ten seconds, one of each tenant
/// each minute. A restart forgets them.
///
/// Some 300 bytes a sample: half a MiB for the server, and 70 KiB for each of the first [#MAX_TENANTS]
/// tenants.
///
/// **Threads.** Any; [#tick] one at a time.
public final class LoadHistory {

    /// Seconds between two calls of [#tick].
    public static final int SERVER_SECONDS = 10;

    static final int TENANT_SECONDS = 60;
    static final int KEPT_SECONDS = 4 * 3600;
    static final int MAX_TENANTS = 64;

    /// Moments for which the policy's clock is known.
    private static final int MAX_CLOCK_READINGS = KEPT_SECONDS / SERVER_SECONDS;

    private final ConsoleSources sources;
    private final Instant since;
    private final Series server = new Series(KEPT_SECONDS / SERVER_SECONDS);
    private final Map<String, Series> tenants = new LinkedHashMap<>();
    private final Deque<ClockReading> clockReadings = new ArrayDeque<>();
    private int ticks;

    /// The policy's clock at a moment.
    private record ClockReading(long clock, long nanos) {}

    public LoadHistory(ConsoleSources sources) {
        this.sources = sources;
        since = sources.wall().instant();
        sources.keyspaces().keySet().stream()
                .limit(MAX_TENANTS)
                .forEach(tenant -> tenants.put(tenant, new Series(KEPT_SECONDS / TENANT_SECONDS)));
    }

    /// Samples of one series, the oldest first.
    private static final class Series {

        private final int capacity;
        private final Deque<LoadSample> samples = new ArrayDeque<>();
        private @Nullable LoadTotals last;

        Series(int capacity) {
            this.capacity = capacity;
        }

        synchronized void add(LoadTotals now, long atSeconds) {
            LoadTotals before = last;
            last = now;
            if (before == null) {
                return;
            }
            if (samples.size() == capacity) {
                samples.removeFirst();
            }
            samples.addLast(now.since(before, atSeconds));
        }

        synchronized List<LoadSample> after(long atSeconds) {
            List<LoadSample> wanted = new ArrayList<>();
            samples.forEach(sample -> {
                if (sample.at() > atSeconds) {
                    wanted.add(sample);
                }
            });
            return wanted;
        }
    }

    /// The answer to a request for the history.
    ///
    /// @param since when it began
    record History(int intervalSeconds, String since, List<LoadSample> samples) {}

    /// Takes the next sample; the first call only begins.
    public void tick() {
        long now = TimeUnit.MILLISECONDS.toSeconds(sources.wall().millis());
        CacheStats stats = sources.cache().stats();
        server.add(LoadTotals.ofServer(sources, stats), now);
        if (ticks++ % (TENANT_SECONDS / SERVER_SECONDS) == 0) {
            tenants.forEach((tenant, series) -> series.add(LoadTotals.ofTenant(sources, stats, tenant), now));
        }
        noteClock(sources.cache().policyClock());
    }

    private void noteClock(long clock) {
        synchronized (clockReadings) {
            if (clockReadings.size() == MAX_CLOCK_READINGS) {
                clockReadings.removeFirst();
            }
            clockReadings.addLast(new ClockReading(clock, sources.clock().nanos()));
        }
    }

    /// Returns how many seconds ago the policy's clock came to a reading, to ten seconds; null when that is longer than
    /// the history goes back.
    ///
    /// The clock advances with uses, so a use happened before the first moment at which the clock read that much.
    @Nullable
    Long secondsSince(long clock) {
        if (clock < 0) {
            return null;
        }
        synchronized (clockReadings) {
            ClockReading first = clockReadings.peekFirst();
            if (first == null || first.clock >= clock) {
                return null;
            }
            long now = sources.clock().nanos();
            long at = now;
            for (ClockReading reading : clockReadings) {
                if (reading.clock >= clock) {
                    at = reading.nanos;
                    break;
                }
            }
            return TimeUnit.NANOSECONDS.toSeconds(now - at);
        }
    }

    /// Returns the samples of the last minutes.
    ///
    /// @param tenant null for the whole server
    History history(@Nullable String tenant, int minutes) {
        long after = TimeUnit.MILLISECONDS.toSeconds(sources.wall().millis()) - minutes * 60L;
        Series series = tenant == null ? server : tenants.get(tenant);
        return new History(
                tenant == null ? SERVER_SECONDS : TENANT_SECONDS,
                since.toString(),
                series == null ? List.of() : series.after(after));
    }

    Instant since() {
        return since;
    }
}
