package io.kvcache.gpu.driver;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/// Says when a device's context has to be made the calling thread's.
final class DeviceThreadTest {

    @Test
    void givenOneDevice_whenAThreadComesAgain_thenItsContextIsStillThere() {
        DeviceThread device = new DeviceThread();
        assertThat(device.enter()).isTrue();
        assertThat(device.enter()).isFalse();
        device.leave();
        assertThat(device.enter()).isTrue();
    }

    @Test
    void givenTwoDevices_whenAThreadUsesThemInTurn_thenItIsBoundEachTime() {
        DeviceThread one = new DeviceThread();
        DeviceThread other = new DeviceThread();
        assertThat(one.enter()).isTrue();
        assertThat(other.enter()).isTrue();
        assertThat(one.enter()).as("the other's context is bound").isTrue();
        assertThat(one.enter()).isFalse();
        assertThat(other.enter()).isTrue();
    }
}
