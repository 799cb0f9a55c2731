package io.kvcache.core.cost;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.withinPercentage;

import io.kvcache.core.identity.ModelPreset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

final class PrefillCostTest {

    private static final double HALF_AN_H100 = 0.5 * 989e12;

    @ParameterizedTest
    @EnumSource(ModelPreset.class)
    void givenAModel_whenPrefilled_thenTheTimeIsThatOfItsOperations(ModelPreset model) {
        PrefillCost cost = PrefillCost.of(model, HALF_AN_H100);
        for (long from : new long[] {0, 512, 100_000}) {
            assertThat(cost.seconds(from, from + 512))
                    .isCloseTo(model.prefillFlops(from, from + 512) / HALF_AN_H100, withinPercentage(1e-6));
        }
    }

    @Test
    void givenLlama8b_whenAThousandTokensArePrefilled_thenAtThirtyThousandASecond() {
        double seconds = PrefillCost.of(ModelPreset.LLAMA_3_8B, HALF_AN_H100).seconds(0, 1000);
        assertThat(1000 / seconds).isBetween(30_000.0, 30_600.0);
    }

    @Test
    void givenARate_whenTokensArePrefilled_thenTheirPlaceDoesNotMatter() {
        PrefillCost cost = PrefillCost.ofTokenRate(10_000);
        assertThat(cost.seconds(0, 5_000)).isEqualTo(0.5);
        assertThat(cost.seconds(95_000, 100_000)).isEqualTo(0.5);
    }

    @ParameterizedTest
    @ValueSource(doubles = {0, -1, Double.NaN})
    void givenNoRate_whenAskedFor_thenItIsRefusedByName(double rate) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> PrefillCost.ofTokenRate(rate))
                .withMessageContaining("tokensPerSecond is " + rate);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> PrefillCost.of(ModelPreset.LLAMA_3_8B, rate))
                .withMessageContaining("flopsPerSecond is " + rate);
    }
}
