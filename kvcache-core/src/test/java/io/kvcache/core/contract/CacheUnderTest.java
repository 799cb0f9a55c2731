package io.kvcache.core.contract;

import io.kvcache.core.KvCache;
import java.time.Duration;

/// A cache of the implementation under test, freshly opened, and what the contract may ask of it beyond
/// [KvCache].
///
/// **Ownership.** The test that opened it closes it, the cache included unless the test did so.
public interface CacheUnderTest extends AutoCloseable {

    /// Opens caches of one implementation.
    @FunctionalInterface
    interface Factory {

        /// Opens an empty cache.
        CacheUnderTest open(CacheSetup setup);
    }

    /// The cache.
    KvCache cache();

    /// Checks the store behind the cache against itself.
    ///
    /// @throws AssertionError that names what does not agree
    void validate();

    /// Returns when all that was done before has taken effect: a remote cache may give up pins a moment
    /// after a table was closed.
    default void settle() {}

    /// Lets time pass, of a cache that was opened for manual time.
    ///
    /// @return false when this implementation's time cannot be moved
    default boolean advance(Duration time) {
        return false;
    }

    /// Returns whether segments throw after their table, view or writer is closed.
    default boolean checked() {
        return false;
    }

    /// How long the implementation may take over what it does not wait for, such as waking a waiter.
    default Duration patience() {
        return Duration.ofSeconds(60);
    }

    @Override
    void close();
}
