package io.kvcache.server.event;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.tiers.TieredKvCache;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class SnapshotLimiterTest {

    private final TieredKvCache cache = TieredKvCache.builder()
            .hostBytes(64L << 20)
            .prefaultInBackground(false)
            .build();
    private final AtomicLong entries = new AtomicLong();
    private final SnapshotLimiter snapshotLimiter = new SnapshotLimiter(cache.events(), entries::get, 1000);

    @AfterEach
    void close() {
        cache.close();
    }

    @Test
    void givenAsManyAsMayBe_whenAnotherIsWanted_thenItWaitsForItsTurn() {
        for (int i = 0; i < SnapshotLimiter.MAX_CONCURRENT; i++) {
            assertThat(snapshotLimiter.tryAcquire()).isNull();
        }
        assertThat(snapshotLimiter.tryAcquire()).contains("try again later");
        snapshotLimiter.release();
        assertThat(snapshotLimiter.tryAcquire()).isNull();
    }

    @Test
    void givenMoreThanTheHeapCanHold_whenASnapshotIsWanted_thenItIsRefused() {
        entries.set(1001);
        assertThat(snapshotLimiter.tryAcquire())
                .isEqualTo("a snapshot would take 1001 entries; with this heap it may take 1000");
        entries.set(1000);
        assertThat(snapshotLimiter.tryAcquire()).isNull();
    }
}
