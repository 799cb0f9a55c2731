package io.kvcache.gpu.tier;

import static io.kvcache.gpu.tier.DeviceTierHarness.chain;
import static io.kvcache.gpu.tier.DeviceTierHarness.key;
import static io.kvcache.gpu.tier.DeviceTierHarness.requireOnDevice;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.tier.TierState;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/// What an engine finds on a device, and keeps of it, while the tier closes, fails or moves blocks.
final class AcquiredTableTest {

    private static final int OUT_OF_MEMORY = 2;

    /// Two kernels for each of 64 blocks.
    private static final int LAUNCHES_OF_A_LOOK = 128;

    private static final int REGION_BLOCKS =
            (int) (DeviceGeometry.of(DeviceTierExtension.BYTES).regionBytes()
                    / DeviceGeometry.pages(DeviceTierHarness.BLOCK_BYTES));

    @RegisterExtension
    private final DeviceTierExtension rig = new DeviceTierExtension();

    private final FakeCuda fakeCuda = rig.fakeCuda;
    private final DeviceTierHarness store = rig.store;

    /// Writes until the first region is being reclaimed, where the device holds still.
    ///
    /// @param first a block there
    private void reclaimHeld(DeviceTier tier, BlockChain first) {
        long number = 0;
        while (number < REGION_BLOCKS) { // so that nothing is on its way to the first region
            rig.write(tier, key(3 * number++ + 1));
        }
        rig.settle(tier);
        fakeCuda.hold();
        while (found(tier, first) == 1) {
            assertThat(number).as("writes until the first region is reclaimed").isLessThan(10_000);
            store.write(tier, key(3 * number++ + 1));
            store.tick(tier, 0);
        }
    }

    @Test
    void givenAWriteThatEndsWhileTheTierCloses_whenAcquiredAfterwards_thenNothingIsFound() {
        BlockChain chain = chain(1);
        CudaTier source = CudaTier.withDriver("device", fakeCuda::open, DeviceTierExtension.BYTES);
        DeviceTier tier = (DeviceTier) source.open(store, MemorySegment.NULL);
        store.tick(tier);
        rig.write(tier, chain.key(0));
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
        DeviceTier tier = rig.open(fakeCuda.open());
        BlockChain buried = kept(0);
        BlockChain stays = kept(1_000_000);
        rig.write(tier, buried.key(0));
        rig.write(tier, stays.key(0));
        reclaimHeld(tier, buried);
        store.tombstone(tier, buried.key(0));
        fakeCuda.release();
        rig.settle(tier);
        assertThat(tier.stats().blocksKept()).isEqualTo(2);
        assertThat(found(tier, stays)).as("what was moved").isEqualTo(1);
        assertThat(found(tier, buried)).as("what was dropped meanwhile").isZero();
        tier.close();
    }

    @Test
    void givenADeviceThatIsLostWhileBlocksAreMoved_whenSettled_thenTheTierCanBeClosed() {
        DeviceTier tier = rig.open(fakeCuda.open());
        BlockChain chain = kept(0);
        rig.write(tier, chain.key(0));
        reclaimHeld(tier, chain);
        fakeCuda.loseDevice(46);
        fakeCuda.release();
        store.tickUntil(tier, () -> tier.state() == TierState.FAILED);
        rig.settle(tier);
        tier.close();
    }

    private CompletableFuture<DeviceBlockTable> verified(DeviceTier tier, BlockChain chain) {
        CompletableFuture<DeviceBlockTable> answer =
                tier.acquireVerified(chain, 0).toCompletableFuture();
        store.tickUntil(tier, answer::isDone);
        return answer;
    }

    @Test
    void givenAnOpenTable_whenTheDeviceRefusesACopyAndLivesOn_thenItsBlocksStayUntilItIsClosed() {
        DeviceDriver driver = fakeCuda.open();
        DeviceTier tier = rig.open(driver);
        BlockChain chain = chain(2);
        rig.write(tier, chain.key(0));
        rig.write(tier, chain.key(1));
        rig.settle(tier);
        DeviceBlockTable table = tier.acquire(chain, 0);
        fakeCuda.failCall("cuModuleLoadData", 1, OUT_OF_MEMORY);
        assertThat(verified(tier, chain)).as("a look that is refused").isCompletedExceptionally();
        fakeCuda.failCall("cuMemcpyHtoDAsync_v2", 1, OUT_OF_MEMORY);
        rig.write(tier, key(1));
        store.tickUntil(tier, () -> store.inFlight() == 0);
        assertThat(tier.state()).isEqualTo(TierState.FAILED);
        assertThat(store.refused).as("told though the table is open").isEqualTo(1);
        assertThat(found(tier, chain)).isZero();
        for (int i = 0; i < table.endBlock(); i++) {
            requireOnDevice(driver, table.span(i), chain.key(i));
        }
        assertThat(tier.isIdle()).isFalse();
        table.close();
        store.tickUntil(tier, tier::isIdle);
        assertThat(fakeCuda.left()).isEmpty();
        tier.close();
    }

    @Test
    void givenMoreBlocksThanOneLookTakes_whenTheSecondIsRefused_thenTheTierServesOnAndHoldsNothing() {
        DeviceTier tier = rig.open(fakeCuda.open());
        BlockChain chain = chain(80);
        for (int i = 0; i < 80; i++) {
            rig.write(tier, chain.key(i));
        }
        rig.settle(tier);
        fakeCuda.failCall("cuLaunchKernel", LAUNCHES_OF_A_LOOK + 3, OUT_OF_MEMORY);
        assertThat(verified(tier, chain)).isCompletedExceptionally();
        assertThat(fakeCuda.injected()).isEqualTo(1);
        assertThat(tier.state()).isEqualTo(TierState.SERVING);
        try (DeviceBlockTable table = verified(tier, chain).join()) {
            assertThat(table.endBlock()).as("asked again").isEqualTo(80);
        }
        tier.close();
    }
}
