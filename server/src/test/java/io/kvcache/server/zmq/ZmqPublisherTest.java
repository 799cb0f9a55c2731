package io.kvcache.server.zmq;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.EventsConfig;
import io.kvcache.server.config.EventsConfig.EventEncoding;
import io.kvcache.server.config.EventsConfig.EventHashes;
import io.kvcache.server.config.EventsConfig.EventMedia;
import io.kvcache.server.event.EventFeed;
import io.kvcache.tiers.TieredKvCache;
import java.time.InstantSource;
import java.util.List;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A publisher that is asked for snapshots, by our own subscriber.
@Timeout(300)
final class ZmqPublisherTest {

    private static final EventsConfig CONFIG = new EventsConfig(
            "tcp://127.0.0.1:*",
            "tcp://127.0.0.1:*",
            "kv",
            EventEncoding.ARRAY,
            EventHashes.ENGINE,
            EventMedia.VLLM,
            true,
            100,
            "default",
            false);

    private final TieredKvCache cache = TieredKvCache.builder()
            .hostBytes(64L << 20)
            .prefaultInBackground(false)
            .build();

    @BeforeEach
    void put() {
        Namespace model = Namespace.of("m", BlockShape.kv(1, 1, 8, 4, Dtype.BF16)).toBuilder()
                .tenant("default")
                .build();
        cache.register(model);
        try (BlockWriter writer = cache.put(BlockChain.of(model, new int[] {1, 2, 3, 4}), 0, 0, KvCache.NO_WAIT)) {
            writer.seal();
        }
    }

    @AfterEach
    void close() {
        cache.close();
    }

    private List<String> snapshot(LongSupplier entries) throws Exception {
        EventFeed feed = new EventFeed(cache, "epoch", EventFeed.subscriberSlots(0, 1), entries, 1000);
        try (ZmqPublisher publisher = ZmqPublisher.open(CONFIG, feed, true, InstantSource.system());
                ZmqSubscriber subscriber =
                        ZmqSubscriber.connect(publisher.publishEndpoint(), publisher.replayEndpoint(), "", () -> {})) {
            return subscriber.snapshot().stream()
                    .flatMap(batch -> batch.events().stream())
                    .map(ZmqSubscriber.Event::name)
                    .toList();
        }
    }

    @Test
    void givenASnapshot_whenTheHeapCanHoldIt_thenAllIsTold() throws Exception {
        assertThat(snapshot(() -> 1)).containsExactly("AllBlocksCleared", "BlockStored");
    }

    @Test
    void givenASnapshot_whenTheHeapCannotHoldIt_thenNothingIsSaidToBeStored() throws Exception {
        assertThat(snapshot(() -> Long.MAX_VALUE)).containsExactly("AllBlocksCleared");
    }
}
