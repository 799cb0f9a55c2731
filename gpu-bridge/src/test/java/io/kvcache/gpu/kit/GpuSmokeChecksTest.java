package io.kvcache.gpu.kit;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// The first checks find something out, each, and leave nothing behind.
final class GpuSmokeChecksTest {

    @Test
    @Tag("slow")
    void givenADevice_whenLookedAtFirst_thenEachCheckSaysSomethingAndNoneIsRefused() {
        FakeCuda fakeCuda = FakeCuda.reset();
        DeviceDriver driver = fakeCuda.open();
        List<String> lines = new ArrayList<>();
        GpuSmokeChecks.runChecks(driver, lines::add);
        driver.close();
        assertThat(lines)
                .hasSizeGreaterThan(10)
                .anyMatch(line -> line.matches("batches: cuMemcpyBatchAsync_v2, [1-9][0-9]* taken, 0 declined"))
                .noneMatch(line -> line.contains("refused"))
                .anyMatch(line -> line.startsWith("libcuda: /"))
                .contains("memory by descriptor: written by one, read by the other")
                .contains("memory and event of another process: opened, and its bytes are there");
        assertThat(fakeCuda.left()).isEmpty();
    }
}
