package io.kvcache.gpu.paging;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceStream;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// What is timed has to end.
final class CopyThresholdTest {

    private final DeviceStream stream = (DeviceStream) Proxy.newProxyInstance(
            DeviceStream.class.getClassLoader(), new Class<?>[] {DeviceStream.class}, (_, _, _) -> null);

    /// Of a device that does not get there, without the time that takes.
    private static final class UnreachedEvent implements DeviceEvent {

        @Override
        public boolean isReached() {
            return false;
        }

        @Override
        public boolean await(long timeoutNanos) {
            return false;
        }

        @Override
        public void close() {}
    }

    @Test
    void givenADeviceThatDoesNotEnd_whenTimed_thenThatIsRefusedAndNothingIsBegunAgain() {
        List<String> begun = new ArrayList<>();
        assertThatExceptionOfType(DeviceException.class)
                .isThrownBy(() ->
                        CopyThreshold.bestTime(System::nanoTime, stream, new UnreachedEvent(), () -> begun.add("work")))
                .satisfies(refused -> assertThat(refused.error()).isEqualTo(DeviceError.REFUSED))
                .withMessageContaining("does not end");
        assertThat(begun).hasSize(1);
    }
}
