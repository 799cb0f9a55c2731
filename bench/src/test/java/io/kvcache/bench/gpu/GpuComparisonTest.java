package io.kvcache.bench.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

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
        List<GpuCell> told = new ArrayList<>();
        try (HostDriver driver = HostDriver.open(4 * BYTES)) {
            List<GpuCell> cells = new GpuComparison(1, BYTES, steps::add).run(driver, told::add);
            assertThat(cells)
                    .extracting(GpuCell::name)
                    .containsExactly("onboard", "offload", "both at once", "into pages", "out of pages")
                    .containsExactlyElementsOf(steps);
            assertThat(told).isEqualTo(cells);
            assertThat(cells).allSatisfy(cell -> {
                assertThat(cell.gigabytes()).isPositive();
                assertThat(cell.bareGigabytes()).isPositive();
                assertThat(cell.ratio()).isPositive();
            });
            assertThat(driver.use()).isEqualTo(DeviceUse.NONE);
        }
    }

    @Test
    void givenAWayThatFails_whenCompared_thenThoseBeforeItWereTold() {
        List<GpuCell> told = new ArrayList<>();
        try (HostDriver driver = HostDriver.open(4 * BYTES)) {
            GpuComparison comparison = new GpuComparison(1, BYTES, step -> {
                if (step.equals("both at once")) {
                    throw new IllegalStateException("the device did not end a copy within a minute");
                }
            });
            assertThatThrownBy(() -> comparison.run(driver, told::add)).hasMessageContaining("within a minute");
            assertThat(told).extracting(GpuCell::name).containsExactly("onboard", "offload");
        }
    }
}
