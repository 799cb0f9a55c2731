package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.store.WriteAdmission.AdmissionThreshold;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

final class AdmissionThresholdTest {

    private static final int PUTS = 100_000;
    private static final long BYTES = 1 << 20;

    /// Puts blocks whose odds are spread evenly from 0 to some most, and answers the share that was written of the
    /// second half of them.
    private static double written(AdmissionThreshold price, double mostOdds) {
        SplittableRandom random = new SplittableRandom(5);
        int written = 0;
        for (int put = 0; put < PUTS; put++) {
            price.onPut(BYTES);
            if (random.nextDouble() * mostOdds >= price.threshold()) {
                price.onWritten(BYTES);
                written += put >= PUTS / 2 ? 1 : 0;
            }
        }
        return (double) written / (PUTS / 2);
    }

    @Test
    void givenMoreThatIsWorthAWriteThanMayBe_whenPut_thenTheShareIsKeptAndTheBestAreWritten() {
        AdmissionThreshold price = new AdmissionThreshold(0.375, 6.6);
        assertThat(written(price, 1)).isCloseTo(0.375, within(0.02));
        assertThat(price.threshold()).isCloseTo(0.625, within(0.03));
    }

    @Test
    void givenLittleThatIsWorthAWrite_whenPut_thenThePriceStaysWhatAWriteCosts() {
        AdmissionThreshold price = new AdmissionThreshold(0.375, 2);
        assertThat(written(price, 0.6)).isCloseTo(1.0 / 6, within(0.02));
        assertThat(price.threshold()).isEqualTo(0.5);
    }

    @Test
    void givenAllIsWrittenWhateverItPromises_whenForLong_thenThePriceFallsAgainSoon() {
        AdmissionThreshold price = new AdmissionThreshold(0.1, 6.6);
        for (int put = 0; put < PUTS; put++) {
            price.onPut(BYTES);
            price.onWritten(BYTES);
        }
        assertThat(price.threshold()).isEqualTo(16);
        assertThat(written(price, 1)).isCloseTo(0.1, within(0.02));
    }

    @Test
    void givenAWriteThatCostsMoreThanAnyUseSaves_whenAsked_thenThePriceBeginsWithAUseForCertain() {
        assertThat(new AdmissionThreshold(0.375, 1e-9).threshold()).isEqualTo(1);
    }
}
