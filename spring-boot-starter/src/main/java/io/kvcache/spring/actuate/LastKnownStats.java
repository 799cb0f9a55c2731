package io.kvcache.spring.actuate;

import io.kvcache.core.CacheAdmin;
import io.kvcache.core.CacheStats;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.spi.Clock;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;

/// Statistics of a cache of other processes, for meters.
///
/// Each meter asks by itself, and a scrape reads some thirty of them: so one request serves a second. While the servers
/// do not answer, meters keep their last values, at first zero, as an exception would fail the start or the whole
/// scrape.
///
/// **Threads.** Any; they wait for each other's request.
final class LastKnownStats implements CacheAdmin {

    private static final long MAX_AGE_NANOS = Duration.ofSeconds(1).toNanos();

    private static final CacheStats NONE = new CacheStats(
            new CacheStats.Memory(0, 0, 0, 0, 0),
            new CacheStats.Records(0, 0, 0),
            new CacheStats.Puts(0, 0, 0, 0, 0, 0, 0, 0, 0),
            new CacheStats.Removals(0, 0, 0, 0),
            0,
            0,
            List.of());

    private final CacheAdmin cache;
    private final Clock clock;
    private CacheStats stats = NONE;
    private long readNanos;

    LastKnownStats(CacheAdmin cache, Clock clock) {
        this.cache = cache;
        this.clock = clock;
        readNanos = clock.nanos() - MAX_AGE_NANOS;
    }

    @Override
    public synchronized CacheStats stats() {
        if (clock.nanos() - readNanos >= MAX_AGE_NANOS) {
            try {
                stats = cache.stats();
            } catch (UncheckedIOException unanswered) {
                // the health indicator tells
            }
            readNanos = clock.nanos(); // also after a failure, which may have taken a whole timeout
        }
        return stats;
    }

    @Override
    public long drop(Namespace namespace) {
        return cache.drop(namespace);
    }

    @Override
    public boolean flush(Duration timeout) {
        return cache.flush(timeout);
    }

    @Override
    public EventStream events() {
        return cache.events();
    }
}
