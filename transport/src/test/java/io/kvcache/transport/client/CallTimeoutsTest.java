package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameConnection;
import io.kvcache.transport.wire.OutboundFrame;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class CallTimeoutsTest {

    private final CallTimeouts callTimeouts = new CallTimeouts();

    /// A connection to somebody who says nothing.
    private static final class SilentConnection implements FrameConnection {

        private volatile boolean open = true;

        @Override
        public boolean send(OutboundFrame frame) {
            return open;
        }

        @Override
        public void close(DisconnectReason reason) {
            open = false;
        }

        @Override
        public void share() {}

        @Override
        public boolean pump() {
            return open;
        }

        @Override
        public boolean isOpen() {
            return open;
        }

        @Override
        public long stalledNanos() {
            return 0;
        }
    }

    @Test
    void givenAWaitThatIsOver_whenTicked_thenItsLineIsClosedAndNoOther() {
        SilentConnection late = new SilentConnection();
        SilentConnection early = new SilentConnection();
        callTimeouts.begin(late, -1);
        callTimeouts.begin(early, TimeUnit.HOURS.toNanos(1));
        callTimeouts.closeExpired();
        assertThat(late.isOpen()).isFalse();
        assertThat(early.isOpen()).isTrue();
    }

    @Test
    void givenNobodyWhoTicks_whenSomebodyWaitsOrBeginsTo_thenTheLineIsClosed() {
        SilentConnection before = new SilentConnection();
        callTimeouts.begin(before, TimeUnit.HOURS.toNanos(1));
        callTimeouts.end();
        assertThat(before.isOpen()).isFalse();
        SilentConnection after = new SilentConnection();
        callTimeouts.begin(after, TimeUnit.HOURS.toNanos(1));
        assertThat(after.isOpen()).isFalse();
        callTimeouts.end(before);
        callTimeouts.end(after);
        assertThat(callTimeouts.hasPending()).isFalse();
    }
}
