package io.kvcache.tiers.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.tiers.device.IoRequest.IoRequestPool;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class AsyncDeviceTest {

    /// An engine whose requests end when told.
    private static final class StuckEngine implements IoBackend {

        private final IoRequestPool requests = new IoRequestPool(2);
        private @Nullable IoRequest stuck;
        private boolean told;
        private boolean closed;

        @Override
        public IoRequestPool requests() {
            return requests;
        }

        @Override
        public void attachOwner() {}

        @Override
        public void enqueue(IoRequest request) {
            stuck = request;
        }

        @Override
        public void submit() {}

        @Override
        public void awaitCompletions(long timeoutNanos) {}

        @Override
        public void wake() {}

        @Override
        public @Nullable IoRequest pollCompleted() {
            IoRequest ended = told ? stuck : null;
            stuck = told ? null : stuck;
            return ended;
        }

        @Override
        public void register(MemorySegment pool) {}

        @Override
        public String describe() {
            return "stuck";
        }

        @Override
        public void close() {
            closed = true;
        }
    }

    private final StuckEngine engine = new StuckEngine();
    private final boolean[] released = new boolean[1];
    private final BlockDevice device = new AsyncDevice(
            "stuck device",
            new SpanValidator(4096),
            engine,
            new AsyncDevice.CloseOptions(1_000_000, () -> released[0] = true));

    @Test
    void givenOperationThatDoesNotEnd_whenClosed_thenTheDeviceStaysOpenUntilItEnds() {
        device.sync(1);
        assertThatIllegalStateException()
                .isThrownBy(device::close)
                .withMessage("stuck device stays open: 1 operations have not ended after 1 ms");
        assertThat(engine.closed).isFalse();
        engine.told = true;
        device.close();
        assertThat(engine.closed).isTrue();
        assertThat(released[0]).isTrue();
    }

    @Test
    void givenOperationThatDoesNotEnd_whenAwaited_thenTheTimeEnds() {
        device.sync(1);
        assertThat(device.await((_, _) -> {}, 1_000_000)).isZero();
        assertThat(device.inFlight()).isEqualTo(1);
    }
}
