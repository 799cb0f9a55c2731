package io.kvcache.planner.model;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class GpuProfileTest {

    @Test
    void givenFigures_whenParsed_thenAGpuOfThese() {
        String text = "flops=989e12:memory=80GB:link=55GB";
        assertThat(GpuProfile.find(text)).contains(new GpuProfile(text, 80e9, 989e12, 55e9));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "v100",
                "",
                "memory=80GB:flops=1e15",
                "memory=80GB:flops=1e15:link=55GB:watts=700",
                "memory=80GB:memory=80GB:flops=1e15:link=55GB",
                "memory=80GB:flops=Infinity:link=55GB",
                "memory=80GB:flops=-1:link=55GB",
                "memory=1KB:flops=1e15:link=55GB",
                "memory=80GB:flops=1e15:link=fast"
            })
    void givenNeitherNameNorFigures_whenParsed_thenEmpty(String text) {
        assertThat(GpuProfile.find(text)).isEmpty();
    }

    @Test
    void givenWeights_whenMemoryForKvIsAsked_thenNineTenthsLessThese() {
        ModelProfile model = ModelCatalogue.named("gpt-oss-120b").orElseThrow();
        GpuProfile gpu = GpuProfile.find("B200").orElseThrow();
        assertThat(gpu.kvBytes(model, 1)).isEqualTo((long) (162e9 - model.weightBytes()));
    }
}
