package io.kvcache.bench.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.bench.gpu.GpuComparison.GpuCopyResult;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.ResourceCounts;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.host.FakeDeviceDriver;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("slow")
final class GpuComparisonTest {

    private static final long BYTES = 8 << 20;

    @Test
    void givenADeviceThatRunsNoCode_whenCompared_thenEveryCopyIsMeasuredAndAllIsGivenBack() {
        List<String> steps = new ArrayList<>();
        List<GpuCopyResult> told = new ArrayList<>();
        try (FakeDeviceDriver driver = FakeDeviceDriver.open(4 * BYTES)) {
            List<GpuCopyResult> cells = new GpuComparison(1, BYTES, steps::add).run(driver, told::add);
            assertThat(cells)
                    .extracting(cell -> cell.figure().name())
                    .containsExactly(
                            "onboard",
                            "offload",
                            "both at once",
                            "into pages",
                            "out of pages",
                            "into small pages",
                            "out of small pages",
                            "device to pages",
                            "pages to device",
                            "device to small pages",
                            "small pages to device")
                    .containsExactlyElementsOf(steps.subList(0, 11));
            assertThat(steps.subList(11, steps.size()))
                    .singleElement()
                    .asString()
                    .startsWith("without kernels: ");
            assertThat(told).isEqualTo(cells);
            assertThat(cells).allSatisfy(cell -> {
                assertThat(cell.figure().value()).isPositive();
                assertThat(cell.figure().reference()).isPositive();
                assertThat(cell.figure().ratio()).isPositive();
            });
            assertThat(driver.resourceCounts()).isEqualTo(ResourceCounts.NONE);
        }
    }

    @Test
    void givenAWayThatFails_whenCompared_thenThoseBeforeItWereTold() {
        List<GpuCopyResult> told = new ArrayList<>();
        try (FakeDeviceDriver driver = FakeDeviceDriver.open(4 * BYTES)) {
            GpuComparison comparison = new GpuComparison(1, BYTES, step -> {
                if (step.equals("both at once")) {
                    throw new IllegalStateException("the device did not end a copy within a minute");
                }
            });
            assertThatThrownBy(() -> comparison.run(driver, told::add)).hasMessageContaining("within a minute");
            assertThat(told).extracting(cell -> cell.figure().name()).containsExactly("onboard", "offload");
        }
    }

    /// As in a container whose limit on locked memory says no.
    @Test
    void givenHostMemoryThatMayNotBeRegistered_whenCompared_thenEveryWayIsMeasuredAndSaysSo() {
        try (FakeDeviceDriver driver = FakeDeviceDriver.open(4 * BYTES)) {
            List<GpuCopyResult> cells = new GpuComparison(1, BYTES, _ -> {}).run(refusing(driver), _ -> {});
            assertThat(cells).hasSize(11).noneMatch(GpuCopyResult::registered);
            assertThat(driver.resourceCounts()).isEqualTo(ResourceCounts.NONE);
        }
    }

    private static DeviceDriver refusing(DeviceDriver driver) {
        return (DeviceDriver) Proxy.newProxyInstance(
                DeviceDriver.class.getClassLoader(), new Class<?>[] {DeviceDriver.class}, (_, called, arguments) -> {
                    if (called.getName().equals("register")) {
                        throw new DeviceException(DeviceError.OUT_OF_MEMORY, "register", "the limit on locked memory");
                    }
                    try {
                        return called.invoke(driver, arguments);
                    } catch (InvocationTargetException thrown) {
                        throw thrown.getCause();
                    }
                });
    }
}
