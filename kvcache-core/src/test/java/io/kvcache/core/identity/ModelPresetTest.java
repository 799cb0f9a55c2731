package io.kvcache.core.identity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class ModelPresetTest {

    /// Half of the 989 TFLOPS of an H100.
    private static final double FLOPS = 0.5 * 989e12;

    @ParameterizedTest
    @CsvSource({
        "llama-3-8b, 131072, 30.3e3, 302",
        "llama-3-70b, 327680, 3.5e3, 2520",
        "qwen3-32b, 262144, 7.4e3, 1230",
        "deepseek-v3, 70272, 6.5e3, 1570"
    })
    void givenAModel_whenEstimated_thenBytesAndTimesAreThoseOfTheCostModel(
            String name, long kvBytes, double tokensPerSecond, double millisFor8k) {
        ModelPreset preset = ModelPreset.fromName(name).orElseThrow();
        assertThat(preset.label()).isEqualTo(name);
        assertThat(preset.kvBytesPerToken()).isEqualTo(kvBytes);
        assertThat(1024 * FLOPS / preset.prefillFlops(0, 1024))
                .isCloseTo(tokensPerSecond, within(0.02 * tokensPerSecond));
        assertThat(1000 * preset.prefillFlops(0, 8192) / FLOPS).isCloseTo(millisFor8k, within(0.01 * millisFor8k));
    }

    @ParameterizedTest
    @EnumSource(ModelPreset.class)
    void givenAPromptInTwoPieces_whenEstimated_thenTheyAddUp(ModelPreset preset) {
        double whole = preset.prefillFlops(0, 4096);
        assertThat(preset.prefillFlops(0, 1000) + preset.prefillFlops(1000, 4096))
                .isCloseTo(whole, within(1e-9 * whole));
        assertThat(preset.prefillFlops(3096, 4096)).isGreaterThan(preset.prefillFlops(0, 1000));
        assertThat(preset.prefillFlops(7, 7)).isZero();
    }

    @ParameterizedTest
    @EnumSource(ModelPreset.class)
    void givenAModel_whenMakingItsShape_thenItHoldsTheBytesOfItsTokens(ModelPreset preset) {
        assertThat(preset.shape(16, Dtype.BF16).bytes()).isEqualTo(16 * preset.kvBytesPerToken());
        assertThat(preset.kvBytesPerToken(Dtype.FP8_E4M3)).isEqualTo(preset.kvBytesPerToken() / 2);
        assertThat(preset.shape(16, Dtype.BF16).layers()).isEqualTo(preset.layers());
    }

    @Test
    void givenAnUnknownName_whenLookedUp_thenThereIsNone() {
        assertThat(ModelPreset.fromName("gpt-2")).isEmpty();
        assertThat(ModelPreset.fromName("Llama-3-8B")).contains(ModelPreset.LLAMA_3_8B);
    }

    @Test
    void givenPositionsTheWrongWayRound_whenEstimated_thenTheMessageNamesThem() {
        assertThatThrownBy(() -> ModelPreset.QWEN3_32B.prefillFlops(9, 8))
                .hasMessage("fromToken = 9 is out of range; allowed: 0 to 8");
    }
}
