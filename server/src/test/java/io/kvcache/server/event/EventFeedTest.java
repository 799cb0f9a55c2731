package io.kvcache.server.event;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.TestKeyspace;
import io.kvcache.server.quota.FairSharePool;
import java.util.ArrayList;
import java.util.List;
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
            EventFeed feed = new EventFeed(
                    test.cache().events(),
                    new NamespaceIdResolver(test.cache()),
                    new SnapshotLimiter(test.cache().events(), () -> 0),
                    () -> false,
                    "epoch",
                    EventFeed.subscriberSlots(1L << 40, 2));
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
}
