package io.kvcache.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatNoException;

import io.kvcache.core.DeviceSupport;
import io.kvcache.core.DeviceSupport.ResizableTier;
import io.kvcache.core.DeviceSupport.Resized;
import io.kvcache.core.contract.Pause;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.host.FakeDeviceDriver;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ServiceLoader;
import java.util.function.Supplier;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// With or without a GPU.
final class GpuSupportTest {

    /// A machine with one device.
    private static GpuSupport support(Supplier<DeviceDriver> device) {
        return new GpuSupport(ordinal -> {
            if (ordinal == 1) {
                throw new DeviceException(DeviceError.NO_DEVICE, "open", "that was all");
            }
            return device.get();
        });
    }

    @Test
    void givenTheModuleOnTheClassPath_whenLoaded_thenThisOneIsFoundAndALineSaysWhatIsThere() {
        FakeCuda.reset();
        assertThat(ServiceLoader.load(DeviceSupport.class))
                .singleElement()
                .isInstanceOf(GpuSupport.class)
                .extracting(DeviceSupport::describeDevices)
                .asInstanceOf(InstanceOfAssertFactories.list(String.class))
                .isNotEmpty()
                .allSatisfy(line ->
                        assertThat(line).doesNotContain("\n").containsPattern("NO_DEVICE|GB/s back|\\(CUDA_ERROR"));
    }

    @Test
    void givenADevice_whenProbed_thenItsLineHasBothSpeeds() {
        assertThat(support(() -> FakeDeviceDriver.open(1L << 30)).describeDevices())
                .singleElement()
                .asString()
                .contains("GB/s to it", "GB/s back");
    }

    @Test
    void givenADeviceThatIsLeftWithSomething_whenProbed_thenThatIsALineToo() {
        assertThat(support(() -> {
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
        assertThat(support(() -> FakeDeviceDriver.open(32L << 20)).describeDevices())
                .singleElement()
                .asString()
                .contains("OUT_OF_MEMORY");
    }

    @Test
    void givenLessMemoryThanAskedFor_whenRequired_thenBothFiguresAreNamed() {
        GpuSupport support = support(() -> FakeDeviceDriver.open(1L << 30));

        assertThatNoException().isThrownBy(() -> support.requireDevice(0, 1L << 30));
        assertThatIllegalStateException()
                .isThrownBy(() -> support.requireDevice(0, 3L << 29))
                .withMessageContaining("GPU 0 (")
                .withMessageEndingWith(" has 1.0 GiB of memory, not 1.5");
    }

    @Test
    void givenSizesOfATier_whenMade_thenItHasThemOrTheRangeIsNamed() {
        FakeCuda fakeCuda = FakeCuda.reset();
        GpuSupport support = support(fakeCuda::open);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> support.tier(0, 1 << 20, 96 << 20))
                .withMessageEndingWith("it takes 33554432 and up, and 37748736 bytes and up to begin with");
        ResizableTier tier = support.tier(0, 36 << 20, 96 << 20);
        assertThat(tier.name()).isEqualTo("GPU 0");
        assertThat(tier.bytes()).isZero();
        assertThat(tier.resize(48 << 20, Duration.ZERO)).isEqualTo(new Resized(0, 0, "the device is out"));
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(32 << 20)
                .prefaultInBackground(false)
                .tier(tier)
                .build()) {
            while (tier.bytes() == 0) {
                Pause.briefly();
            }
            assertThat(tier.resize(96 << 20, Duration.ofSeconds(60))).isEqualTo(new Resized(36 << 20, 96 << 20, ""));
            assertThat(cache.diskStats().getFirst().tier().capacityBytes()).isEqualTo(96 << 20);
            assertThat(tier.resize((36 << 20) + 1, Duration.ofSeconds(60)))
                    .isEqualTo(new Resized(96 << 20, 36 << 20, ""));
        }
    }

    @Test
    void givenADeviceWithoutMoreMemory_whenATierGrows_thenThatIsTheReason() {
        FakeCuda fakeCuda = FakeCuda.reset();
        fakeCuda.memory(64 << 20);
        ResizableTier tier = support(fakeCuda::open).tier(0, 36 << 20, 96 << 20);
        try (TieredKvCache _ = TieredKvCache.builder()
                .hostBytes(32 << 20)
                .prefaultInBackground(false)
                .tier(tier)
                .build()) {
            while (tier.bytes() == 0) {
                Pause.briefly();
            }
            Resized resized = tier.resize(96 << 20, Duration.ofSeconds(60));
            assertThat(resized.after()).isBetween(42L << 20, 64L << 20);
            assertThat(resized.reason()).isEqualTo("the device has no more memory");
        }
    }

    @Test
    void givenNoSuchDevice_whenRequired_thenTheDriversReasonIsNamed() {
        assertThatIllegalStateException()
                .isThrownBy(() -> support(() -> FakeDeviceDriver.open(1L << 30)).requireDevice(1, 0))
                .withMessageContaining("NO_DEVICE")
                .withMessageContaining("that was all");
    }

    @Test
    void givenASocketThatExists_whenListening_thenItsPathAndTheCauseAreNamed(@TempDir Path folder) throws IOException {
        Path taken = Files.createFile(folder.resolve("gpu-0"));

        try (TieredKvCache cache = TieredKvCache.builder().hostBytes(32 << 20).build()) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> support(() -> FakeDeviceDriver.open(1L << 30))
                            .listenForEngines(cache, 0, null, _ -> null, taken.toString()))
                    .withMessageContaining(taken.toString())
                    .withMessageEndingWith("errno 98");
        }
    }
}
