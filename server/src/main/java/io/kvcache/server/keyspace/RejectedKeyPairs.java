package io.kvcache.server.keyspace;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.time.Clock;
import java.time.Duration;

/// Halves for which there was no room a moment ago, so that the other one need not come either.
///
/// **Threads.** Any.
final class RejectedKeyPairs {

    /// Longer than a client takes from the first half to the second.
    private static final Duration RETENTION = Duration.ofSeconds(10);

    private static final int MAX_KEYS = 10_000;

    private final Cache<Key, Boolean> keys;

    RejectedKeyPairs(Clock clock) {
        keys = Caffeine.newBuilder()
                .maximumSize(MAX_KEYS)
                .expireAfterWrite(RETENTION)
                .ticker(clock::nanos)
                .executor(Runnable::run)
                .build();
    }

    boolean contains(Key key) {
        return keys.getIfPresent(key) != null;
    }

    void add(Key key) {
        keys.put(key, true);
    }

    void remove(Key key) {
        keys.invalidate(key);
    }
}
