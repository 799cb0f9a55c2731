package io.kvcache.bench.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.gpu.driver.DeviceUse;
import io.kvcache.gpu.host.HostDriver;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class GpuComparisonTest {

    private static final long BYTES = 8 << 20;

    @Test
    void givenADeviceThatRunsNoCode_whenCompared_thenEveryCopyIsMeasuredAndAllIsGivenBack() {
        List<String> steps = new ArrayList<>();
        try (HostDriver driver = HostDriver.open(4 * BYTES)) {
            List<GpuCell> cells = new GpuComparison(1, BYTES, steps::add).run(driver);
            assertThat(cells)
                    .extracting(GpuCell::name)
                    .containsExactly("onboard", "offload", "both at once", "into pages", "out of pages")
                    .containsExactlyElementsOf(steps);
            assertThat(cells).allSatisfy(cell -> {
                assertThat(cell.gigabytes()).isPositive();
                assertThat(cell.bareGigabytes()).isPositive();
                assertThat(cell.ratio()).isPositive();
            });
            assertThat(driver.use()).isEqualTo(DeviceUse.NONE);
        }
    }
}
