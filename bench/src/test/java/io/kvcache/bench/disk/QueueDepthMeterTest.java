package io.kvcache.bench.disk;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.disk.DeviceIoRunner.QueueDepthMeter;
import org.junit.jupiter.api.Test;

final class QueueDepthMeterTest {

    private final QueueDepthMeter meter = new QueueDepthMeter(1000);

    @Test
    void givenRequestsThatOverlap_whenAsked_thenEachCountsForAsLongAsItWasOnItsWay() {
        meter.onQueued(1000);
        meter.onQueued(1010);
        meter.onCompleted(1030);
        meter.onCompleted(1040);
        assertThat(meter.averageDepth(1100)).isEqualTo((40 + 20) / 100.0);
    }

    @Test
    void givenFullQueueThroughout_whenAsked_thenItsDepth() {
        for (int i = 0; i < 8; i++) {
            meter.onQueued(1000);
        }
        assertThat(meter.averageDepth(2000)).isEqualTo(8);
    }

    @Test
    void givenNoTimePassed_whenAsked_thenZero() {
        meter.onQueued(1000);
        assertThat(meter.averageDepth(1000)).isZero();
    }
}
