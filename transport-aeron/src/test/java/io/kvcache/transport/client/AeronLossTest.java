package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.aeron.AeronEndpoint;
import io.kvcache.transport.aeron.TestMediaDriver;
import io.kvcache.transport.endpoint.EndpointOptions;
import java.io.IOException;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Aeron over UDP where three of ten datagrams are lost, in both directions: data, and what asks for it again.
@Timeout(300)
final class AeronLossTest {

    private static final double SHARE = 0.3;
    private static final long SEED = 20_261_122;

    @Test
    @Tag("slow")
    void givenThreeOfTenMessagesAreLost_whenBlocksGoThereAndBack_thenAllComeAndEveryByteIsRight() throws IOException {
        try (TestMediaDriver driver = TestMediaDriver.losing(SHARE, SEED);
                TieredKvCache store = TieredKvCache.builder()
                        .hostBytes(64 << 20)
                        .prefaultInBackground(false)
                        .failOnLeak(true)
                        .closeWait(Duration.ofSeconds(10))
                        .build();
                AeronEndpoint endpoint = AeronEndpoint.open(
                        store, "aeron:udp?endpoint=127.0.0.1:0|" + driver.parameter(), EndpointOptions.DEFAULTS)) {
            try (RemoteKvCache cache = RemoteKvCache.builder(endpoint.address() + "|" + driver.parameter())
                    .requestTimeout(Duration.ofSeconds(60))
                    .connect()) {
                cache.register(TestBlocks.SPACE);
                BlockChain chain = TestBlocks.chain(1, 3);
                for (int index = 0; index < chain.length(); index++) {
                    int next = index;
                    TestBlocks.await("block " + index, () -> TestBlocks.put(cache, chain, next));
                }
                assertThat(TestBlocks.verified(store, chain)).isEqualTo(3);
                TestBlocks.await("all of them", () -> TestBlocks.verified(cache, chain) == 3);
                assertThat(cache.remoteStats().corrupt()).isZero();
            }
            assertThat(driver.lostCount()).isPositive();
            TestBlocks.await("all is back", () -> store.stats().openTables() == 0);
            store.validate();
        }
    }
}
