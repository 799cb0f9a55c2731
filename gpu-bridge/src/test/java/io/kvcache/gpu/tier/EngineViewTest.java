package io.kvcache.gpu.tier;

import static io.kvcache.gpu.tier.TierHarness.chain;
import static io.kvcache.gpu.tier.TierHarness.key;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.gpu.cuda.StandIn;
import java.lang.foreign.MemorySegment;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// What an engine finds on a device, and keeps of it, while the tier closes, fails or moves blocks.
final class EngineViewTest {

    private static final long BYTES = 4 << 20;
    private static final int REGION_BLOCKS =
            (int) (DeviceGeometry.of(BYTES).regionBytes() / DeviceGeometry.pages(TierHarness.BLOCK_BYTES));

    private final StandIn standIn = StandIn.fresh();
    private final TierHarness store = new TierHarness();
    private final Logger log = Logger.getLogger("io.kvcache.gpu");

    @BeforeEach
    void onlyOnTheStandIn() {
        assumeThat(standIn.holds()).as("a driver whose copies can be held back").isTrue();
        log.setLevel(Level.OFF);
    }

    @AfterEach
    void reset() {
        log.setLevel(null);
        StandIn.fresh();
        assertThat(standIn.left()).isEmpty();
        store.close();
    }

    private void write(DeviceTier tier, BlockKey key) {
        store.until(tier, () -> store.write(tier, key));
    }

    @Test
    void givenAWriteThatEndsWhileTheTierCloses_whenAcquiredAfterwards_thenNothingIsFound() {
        BlockChain chain = chain(1);
        CudaTier source = CudaTier.over("device", standIn::open, BYTES);
        DeviceTier tier = (DeviceTier) source.open(store, MemorySegment.NULL);
        store.tick(tier);
        write(tier, chain.key(0));
        tier.close();
        assertThat(store.written).isEqualTo(1);
        try (DeviceBlockTable table = source.acquire(chain, 0)) {
            assertThat(table.endBlock()).as("of memory that is given back").isZero();
        }
    }

    /// A chain of one block that the harness keeps when it is offered.
    private static BlockChain kept(int first) {
        int from = first;
        while (chain(from, 1).key(0).hi() % 3 != 0) {
            from++;
        }
        return chain(from, 1);
    }

    private static int found(DeviceTier tier, BlockChain chain) {
        try (DeviceBlockTable table = tier.acquire(chain, 0)) {
            return table.endBlock();
        }
    }

    @Test
    void givenABlockThatIsBeingMoved_whenItIsBuried_thenTheMoveDoesNotBringItBack() {
        DeviceTier tier = new DeviceTier("device", standIn.open(), DeviceGeometry.of(BYTES), MemorySegment.NULL, store);
        store.tick(tier);
        BlockChain buried = kept(0);
        BlockChain stays = kept(1_000_000);
        write(tier, buried.key(0));
        write(tier, stays.key(0));
        int number = 0;
        while (number < REGION_BLOCKS) { // so that nothing is on its way to the first region
            write(tier, key(3L * number++ + 1));
        }
        store.until(tier, () -> store.underWay() == 0 && tier.idle());
        standIn.hold();
        while (found(tier, buried) == 1) {
            assertThat(number).as("writes until the first region is reclaimed").isLessThan(10_000);
            store.write(tier, key(3L * number++ + 1));
            store.tick(tier, 0);
        }
        store.bury(tier, buried.key(0));
        standIn.release();
        store.until(tier, () -> store.underWay() == 0 && tier.idle());
        assertThat(tier.stats().blocksKept()).isEqualTo(2);
        assertThat(found(tier, stays)).as("what was moved").isEqualTo(1);
        assertThat(found(tier, buried)).as("what was dropped meanwhile").isZero();
        tier.close();
    }
}
