package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import org.junit.jupiter.api.Test;

/// What requests that wait keep of chains.
final class ChainHoldsTest {

    private static final long ROOM = 1000;

    private final HeapShare share = new HeapShare(ROOM);
    private final ChainHolds holds = new ChainHolds(share);

    private static ChainSlots.Told told(BlockChain chain, int length, long bytes) {
        return new ChainSlots.Told(chain.prefix(length), chain, bytes);
    }

    @Test
    void givenManyThatWaitWithOneChain_whenTheyEnd_thenItCountsOnceAndUntilTheLast() {
        BlockChain chain = Serving.chain(1, 10);
        for (int length = 1; length <= 5; length++) {
            assertThat(holds.of(told(chain, length, 600)).begin()).isTrue();
            assertThat(share.taken()).isEqualTo(600);
        }
        for (int length = 1; length <= 5; length++) {
            assertThat(share.taken()).isEqualTo(600);
            holds.of(told(chain, length, 600)).end();
        }
        assertThat(share.taken()).isZero();
    }

    @Test
    void givenAChainThatIsKept_whenThereIsNoRoomForAnother_thenItIsRefusedAndTakesNothing() {
        Service.Hold one = holds.of(told(Serving.chain(1, 10), 10, 600));
        Service.Hold other = holds.of(told(Serving.chain(1, 10), 10, 600));
        assertThat(one.begin()).isTrue();
        assertThat(other.begin()).as("another chain, though of the same keys").isFalse();
        assertThat(share.taken()).isEqualTo(600);
        one.end();
        assertThat(other.begin()).isTrue();
        other.end();
        assertThat(share.taken()).isZero();
    }
}
