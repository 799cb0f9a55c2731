package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.endpoint.ChainCache.HeapBudget;
import org.junit.jupiter.api.Test;

/// What requests that wait keep of chains.
final class ChainRetentionTest {

    private static final long ROOM = 1000;

    private final HeapBudget share = new HeapBudget(ROOM);
    private final ChainCache.ChainRetention holds = new ChainCache.ChainRetention(share);

    private static ChainCache.ResolvedChain told(BlockChain chain, int length, long bytes) {
        return new ChainCache.ResolvedChain(chain.prefix(length), chain, bytes);
    }

    @Test
    void givenManyThatWaitWithOneChain_whenTheyEnd_thenItCountsOnceAndUntilTheLast() {
        BlockChain chain = EndpointFixture.chain(1, 10);
        for (int length = 1; length <= 5; length++) {
            assertThat(holds.retain(told(chain, length, 600)).begin()).isTrue();
            assertThat(share.reservedBytes()).isEqualTo(600);
        }
        for (int length = 1; length <= 5; length++) {
            assertThat(share.reservedBytes()).isEqualTo(600);
            holds.retain(told(chain, length, 600)).end();
        }
        assertThat(share.reservedBytes()).isZero();
    }

    @Test
    void givenAChainThatIsKept_whenThereIsNoRoomForAnother_thenItIsRefusedAndTakesNothing() {
        ChainCache.RetainedChain one = holds.retain(told(EndpointFixture.chain(1, 10), 10, 600));
        ChainCache.RetainedChain other = holds.retain(told(EndpointFixture.chain(1, 10), 10, 600));
        assertThat(one.begin()).isTrue();
        assertThat(other.begin()).as("another chain, though of the same keys").isFalse();
        assertThat(share.reservedBytes()).isEqualTo(600);
        one.end();
        assertThat(other.begin()).isTrue();
        other.end();
        assertThat(share.reservedBytes()).isZero();
    }
}
