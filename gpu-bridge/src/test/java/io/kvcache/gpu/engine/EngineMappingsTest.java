package io.kvcache.gpu.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.driver.VirtualMemory.PhysicalPages;
import org.junit.jupiter.api.Test;

final class EngineMappingsTest {

    /// A region is a range, a page and a mapping.
    private static final int PARTS = 3;

    @Test
    void givenARegionThatIsRefused_whenAllIsClosed_thenTheOthersAreAndTheRestGoesWithTheDriver() {
        FakeCuda fakeCuda = FakeCuda.reset();
        assumeThat(fakeCuda.canHold())
                .as("a driver whose calls can be made to fail")
                .isTrue();
        DeviceDriver engine = fakeCuda.open();
        VirtualMemory virtual = engine.virtualMemory();
        PhysicalPages pages = virtual.createShared(virtual.pageBytes());
        int descriptor = virtual.exportDescriptor(pages);
        String before = fakeCuda.left();
        DeviceDriver driver = fakeCuda.open();
        driver.openStream(Priority.NORMAL);
        EngineMappings memory = new EngineMappings(driver);
        for (int region = 0; region < 3; region++) {
            assertThat(memory.open(descriptor, pages.bytes())).isEqualTo(region);
        }
        fakeCuda.failTwice("cuStreamQuery", 999); // one answer alone may be about something else
        assertThatExceptionOfType(DeviceException.class).isThrownBy(memory::close);
        assertThat(driver.resourceCounts().virtual()).isEqualTo(PARTS);
        driver.close();
        assertThat(fakeCuda.left()).isEqualTo(before);
        UnixSocket.close(descriptor);
        virtual.release(pages);
        engine.close();
        assertThat(fakeCuda.left()).isEmpty();
    }
}
