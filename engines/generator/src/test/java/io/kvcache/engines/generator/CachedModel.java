package io.kvcache.engines.generator;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import java.time.Duration;

/// A small random model over a store of its own, for tests of what stands on the generator.
///
/// @param <M> the engine's kind of model
public interface CachedModel<M extends TextModel> extends AutoCloseable {

    KvCache cache();

    M model();

    PrefixCachedGenerator<M> generator();

    /// Waits until the store has all that was computed.
    default void awaitStored() throws InterruptedException {
        assertThat(generator().awaitStored(Duration.ofSeconds(60))).isTrue();
    }

    /// Empties the store.
    default void dropAll() throws InterruptedException {
        awaitStored();
        cache().drop(generator().namespace());
    }

    @Override
    void close();
}
