package io.kvcache.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.DeviceProbe;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.host.FakeDeviceDriver;
import java.util.ServiceLoader;
import java.util.function.Supplier;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;

/// With or without a GPU.
final class GpuProbeTest {

    /// A machine with one device.
    private static GpuProbe probe(Supplier<DeviceDriver> device) {
        return new GpuProbe(ordinal -> {
            if (ordinal == 1) {
                throw new DeviceException(DeviceError.NO_DEVICE, "open", "that was all");
            }
            return device.get();
        });
    }

    @Test
    void givenTheModuleOnTheClassPath_whenProbesAreLoaded_thenThisOneIsFoundAndALineSaysWhatIsThere() {
        assertThat(ServiceLoader.load(DeviceProbe.class))
                .singleElement()
                .isInstanceOf(GpuProbe.class)
                .extracting(DeviceProbe::describeDevices)
                .asInstanceOf(InstanceOfAssertFactories.list(String.class))
                .isNotEmpty()
                .allSatisfy(line -> assertThat(line)
                        .doesNotContain("\n")
                        .containsPattern("NO_DRIVER|NO_DEVICE|GB/s back|\\(CUDA_ERROR"));
    }

    @Test
    void givenADevice_whenProbed_thenItsLineHasBothSpeeds() {
        assertThat(probe(() -> FakeDeviceDriver.open(1L << 30)).describeDevices())
                .singleElement()
                .asString()
                .contains("GB/s to it", "GB/s back");
    }

    @Test
    void givenADeviceThatIsLeftWithSomething_whenProbed_thenThatIsALineToo() {
        assertThat(probe(() -> {
                            DeviceDriver driver = FakeDeviceDriver.open(1L << 30);
                            driver.allocate(1);
                            return driver;
                        })
                        .describeDevices())
                .hasSize(2)
                .anyMatch(line -> line.contains("GB/s back"))
                .anyMatch(line -> line.startsWith("GPU 0: ") && line.contains("before all was given back"));
    }

    /// As beside an engine, which takes nearly all of it.
    @Test
    void givenADeviceThatIsFull_whenProbed_thenThatIsItsOnlyLineAndNothingIsLeftThere() {
        assertThat(probe(() -> FakeDeviceDriver.open(32L << 20)).describeDevices())
                .singleElement()
                .asString()
                .contains("OUT_OF_MEMORY");
    }
}
