package io.kvcache.gpu.driver;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/// Says when a device's context has to be made the calling thread's.
final class DeviceThreadBindingTest {

    @Test
    void givenOneDevice_whenAThreadComesAgain_thenItsContextIsStillThere() {
        DeviceThreadBinding device = new DeviceThreadBinding();
        assertThat(device.bindCurrentThread()).isTrue();
        assertThat(device.bindCurrentThread()).isFalse();
        device.reset();
        assertThat(device.bindCurrentThread()).isTrue();
    }

    @Test
    void givenTwoDevices_whenAThreadUsesThemInTurn_thenItIsBoundEachTime() {
        DeviceThreadBinding one = new DeviceThreadBinding();
        DeviceThreadBinding other = new DeviceThreadBinding();
        assertThat(one.bindCurrentThread()).isTrue();
        assertThat(other.bindCurrentThread()).isTrue();
        assertThat(one.bindCurrentThread()).as("the other's context is bound").isTrue();
        assertThat(one.bindCurrentThread()).isFalse();
        assertThat(other.bindCurrentThread()).isTrue();
    }
}
