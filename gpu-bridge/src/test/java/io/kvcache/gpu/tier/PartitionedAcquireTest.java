package io.kvcache.gpu.tier;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.gpu.driver.DeviceDriver;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/// Parts of a device look at what they have of a chain, each in its own time.
final class PartitionedAcquireTest {

    @RegisterExtension
    private final DeviceTierExtension rig = new DeviceTierExtension();

    @Test
    void givenAPartThatCloses_whenAnotherHasNotLookedYet_thenItWaitsForNoneAndThePrefixEndsThere() {
        DeviceDriver driver = rig.fakeCuda.open();
        DeviceTier one = rig.open(driver);
        DeviceTier other = rig.open(rig.fakeCuda.open());
        BlockChain chain = DeviceTierHarness.chain(4);
        rig.write(one, chain.key(0));
        rig.settle(one);
        rig.write(other, chain.key(1));
        rig.settle(other);
        rig.write(one, chain.key(2));
        rig.settle(one);
        rig.write(other, chain.key(3));
        rig.settle(other);
        CompletableFuture<DeviceBlockTable> answer =
                CudaTier.acquireVerified(List.of(one, other), chain, 0).toCompletableFuture();
        other.close();
        assertThat(rig.fakeCuda.left()).as("its driver is closed").endsWith(" and 1 contexts");
        assertThat(answer).as("the first has not looked").isNotDone();
        rig.store.tickUntil(one, answer::isDone);
        try (DeviceBlockTable table = answer.join()) {
            assertThat(table.endBlock()).isEqualTo(1);
            DeviceTierHarness.requireOnDevice(driver, table.span(0), chain.key(0));
        }
        one.close();
    }
}
