package io.kvcache.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ConfidenceIntervalTest {

    @ParameterizedTest
    @CsvSource({
        "1, 12.7062",
        "2, 4.3027",
        "3, 3.1824",
        "4, 2.7764",
        "5, 2.5706",
        "9, 2.2622",
        "10, 2.2281",
        "19, 2.0930",
        "29, 2.0452",
        "30, 2.0423",
        "99, 1.9842",
        "100, 1.9840",
        "999, 1.9623"
    })
    void givenDegreesOfFreedom_whenTheQuantileIsComputed_thenItIsThatOfTheTables(int degrees, double expected) {
        assertThat(ConfidenceInterval.quantile(degrees)).isCloseTo(expected, within(5e-5));
    }

    @Test
    void givenValues_whenEstimated_thenMeanAndIntervalOfStudent() {
        ConfidenceInterval interval = ConfidenceInterval.of(List.of(1.0, 2.0, 3.0, 4.0, 5.0));
        assertThat(interval.mean()).isEqualTo(3);
        assertThat(interval.halfWidth()).isCloseTo(2.776445 * Math.sqrt(2.5 / 5), within(1e-6));
        assertThat(interval.low()).isEqualTo(3 - interval.halfWidth());
        assertThat(interval.high()).isEqualTo(3 + interval.halfWidth());
    }

    @Test
    void givenEqualValues_whenEstimated_thenAnIntervalOfNoWidth() {
        assertThat(ConfidenceInterval.of(List.of(0.5, 0.5))).isEqualTo(new ConfidenceInterval(0.5, 0));
    }

    @Test
    void givenOneValue_whenEstimated_thenRefused() {
        assertThatThrownBy(() -> ConfidenceInterval.of(List.of(1.0))).hasMessage("values are 1, must be at least 2");
    }
}
