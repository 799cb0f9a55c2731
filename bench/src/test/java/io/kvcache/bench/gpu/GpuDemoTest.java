package io.kvcache.bench.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// With or without a GPU.
@Tag("slow")
final class GpuDemoTest {

    @Test
    void givenMoreThanHostMemoryHolds_whenKeptOnADevice_thenAllOfItComesBack() {
        GpuDemo.Result result = GpuDemo.run();
        assertThat(result.put()).isEqualTo(150);
        assertThat(result.passed()).as(result.toString()).isTrue();
        assertThat(result.onDevice()).isPositive();
        assertThat(result.device()).isNotBlank();
    }
}
