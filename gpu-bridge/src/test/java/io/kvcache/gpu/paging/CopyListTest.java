package io.kvcache.gpu.paging;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.contract.Pause;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.cuda.FaultInjection;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceDriver.ResourceCounts;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.kernel.GpuKernels;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/// What becomes of a list of pieces that the device does not read.
final class CopyListTest {

    private static final int PIECE = 1024;

    private final FakeCuda fakeCuda = FakeCuda.reset();

    /// As long as both events are there, nothing lets the device go on.
    private void releaseOnce(long destroyed) {
        long since = System.nanoTime();
        while (fakeCuda.calls("cuEventDestroy_v2") < destroyed
                && System.nanoTime() - since < TimeUnit.SECONDS.toNanos(30)) {
            Pause.briefly();
        }
        fakeCuda.release();
    }

    @Test
    void givenADeviceThatDoesNotEnd_whenAListIsClosed_thenItSaysSoAndGivesBackWhatItHas() throws Exception {
        FaultInjection.assumePossible(fakeCuda);
        try (DeviceDriver driver = fakeCuda.open();
                DeviceStream stream = driver.openStream(Priority.NORMAL);
                GpuKernels kernels = GpuKernels.load(driver, 1)) {
            DeviceSpan memory = driver.allocate(2 * PIECE);
            ResourceCounts before = driver.resourceCounts();
            CopyList list = new CopyList(driver, kernels, 1, 1);
            list.add(memory.address(), memory.address().plus(PIECE));
            fakeCuda.hold();
            list.copy(stream, PIECE);
            long destroyed = fakeCuda.calls("cuEventDestroy_v2") + 2;
            Thread later = Thread.ofPlatform().daemon(true).start(() -> releaseOnce(destroyed));
            assertThatIllegalStateException().isThrownBy(list::close).withMessageContaining("does not read a list");
            later.join();
            assertThat(driver.resourceCounts()).isEqualTo(before);
            driver.free(memory);
        }
        assertThat(fakeCuda.left()).isEmpty();
    }
}
