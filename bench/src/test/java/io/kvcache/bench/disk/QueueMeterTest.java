package io.kvcache.bench.disk;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class QueueMeterTest {

    private final QueueMeter meter = new QueueMeter(1000);

    @Test
    void givenRequestsThatOverlap_whenAsked_thenEachCountsForAsLongAsItWasOnItsWay() {
        meter.queued(1000);
        meter.queued(1010);
        meter.delivered(1030);
        meter.delivered(1040);
        assertThat(meter.average(1100)).isEqualTo((40 + 20) / 100.0);
    }

    @Test
    void givenFullQueueThroughout_whenAsked_thenItsDepth() {
        for (int i = 0; i < 8; i++) {
            meter.queued(1000);
        }
        assertThat(meter.average(2000)).isEqualTo(8);
    }

    @Test
    void givenNoTimePassed_whenAsked_thenZero() {
        meter.queued(1000);
        assertThat(meter.average(1000)).isZero();
    }
}
