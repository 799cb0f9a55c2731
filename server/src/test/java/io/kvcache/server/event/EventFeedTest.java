package io.kvcache.server.event;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.quota.FairSharePool;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

final class EventFeedTest {

    private record Silent(String tenant, int number) implements EventFeed.Subscriber {
        @Override
        public void wake(long next) {}

        @Override
        public void end() {}
    }

    @Test
    void givenOneTenantThatFollowsAThousandTimes_whenAnotherFollows_thenThereIsAPlace() {
        try (TestKeyspace test = TestKeyspace.small()) {
            EventFeed feed = new EventFeed(test.cache(), "epoch", EventFeed.subscriberSlots(1L << 40, 2));
            List<EventFeed.Subscriber> in = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                Silent one = new Silent("one", i);
                if (feed.add(one)) {
                    in.add(one);
                }
            }
            assertThat(in).hasSize(128);
            assertThat(feed.add(new Silent("two", 0))).isTrue();

            in.forEach(feed::remove);
            in.forEach(feed::remove);

            assertThat(feed.subscriberCount()).isEqualTo(1);
            assertThat(feed.add(new Silent("one", 0))).isTrue();
        }
    }

    @Test
    void givenLittleMemory_whenPlacesAreCounted_thenAllOfThemFit() {
        FairSharePool places = EventFeed.subscriberSlots(128L << 20, 1);

        assertThat(places.capacity()).isEqualTo(42);
        assertThat(EventFeed.subscriberSlots(0, 1).capacity()).isEqualTo(8);
        assertThat(EventFeed.subscriberSlots(Long.MAX_VALUE, 1).capacity()).isEqualTo(256);
    }

    @Test
    void givenAsManySnapshotsAsMayBe_whenAnotherIsWanted_thenItWaitsForItsTurn() {
        try (TestKeyspace test = TestKeyspace.small()) {
            EventFeed feed = new EventFeed(test.cache(), "epoch", EventFeed.subscriberSlots(0, 1));
            for (int i = 0; i < EventFeed.MAX_SNAPSHOTS; i++) {
                assertThat(feed.tryAcquireSnapshot()).isNull();
            }
            assertThat(feed.tryAcquireSnapshot()).contains("try again later");
            feed.releaseSnapshot();
            assertThat(feed.tryAcquireSnapshot()).isNull();
        }
    }

    @Test
    void givenMoreThanTheHeapCanHold_whenASnapshotIsWanted_thenItIsRefused() {
        try (TestKeyspace test = TestKeyspace.small()) {
            AtomicLong entries = new AtomicLong(1001);
            EventFeed feed = new EventFeed(test.cache(), "epoch", EventFeed.subscriberSlots(0, 1), entries::get, 1000);
            assertThat(feed.tryAcquireSnapshot())
                    .isEqualTo("a snapshot would take 1001 entries; with this heap it may take 1000");
            entries.set(1000);
            assertThat(feed.tryAcquireSnapshot()).isNull();
        }
    }
}
