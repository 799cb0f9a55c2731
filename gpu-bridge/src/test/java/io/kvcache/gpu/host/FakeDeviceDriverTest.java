package io.kvcache.gpu.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceDriverContract;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

/// The device in plain Java keeps the contract of all devices, at full speed and late.
final class FakeDeviceDriverTest {

    private static final long BYTES = 64 << 20;

    @Nested
    final class FullSpeedDriver extends DeviceDriverContract {
        FullSpeedDriver() {
            super(new BlockableDevice(BYTES, 0));
        }
    }

    @Nested
    final class SlowDriver extends DeviceDriverContract {
        SlowDriver() {
            super(new BlockableDevice(BYTES, TimeUnit.MICROSECONDS.toNanos(300)));
        }
    }

    @Test
    void givenMemoryThatIsGoneBeforeTheCopy_whenTheStreamGetsThere_thenTheDeviceFailsAndCloses() {
        BlockableDevice blockableDevice = new BlockableDevice(BYTES, 0);
        DeviceDriver driver = blockableDevice.open();
        DeviceSpan slab = driver.allocate(4096);
        DeviceStream stream = driver.openStream(Priority.NORMAL);
        DeviceEvent event = driver.openEvent();
        blockableDevice.hold();
        try (Arena gone = Arena.ofShared()) {
            MemorySegment memory = gone.allocate(4096);
            stream.copyToDevice(memory, slab.address());
        }
        stream.record(event);
        blockableDevice.release();
        DeviceException failed = failure(event);
        assertThat(failed.error()).isEqualTo(DeviceError.ILLEGAL_ACCESS);
        assertThat(failed.error().isFatal()).isTrue();
        driver.close();
    }

    private static DeviceException failure(DeviceEvent event) {
        try {
            event.await(TimeUnit.SECONDS.toNanos(30));
        } catch (DeviceException expected) {
            return expected;
        }
        throw new AssertionError("the device did not fail");
    }

    @Test
    void givenASizeOfNothing_whenOpened_thenRefused() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FakeDeviceDriver.open(0))
                .withMessageContaining("1 and up");
    }
}
