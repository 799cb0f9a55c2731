package io.kvcache.transport.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.transport.link.DisconnectReason;
import io.kvcache.transport.link.FrameConnection;
import io.kvcache.transport.wire.Frame;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class DeadlinesTest {

    private final Deadlines deadlines = new Deadlines();

    /// A connection to somebody who says nothing.
    private static final class Silent implements FrameConnection {

        private volatile boolean open = true;

        @Override
        public boolean send(Frame frame) {
            return open;
        }

        @Override
        public void close(DisconnectReason reason) {
            open = false;
        }

        @Override
        public boolean pump() {
            return open;
        }

        @Override
        public boolean open() {
            return open;
        }

        @Override
        public long stalledNanos() {
            return 0;
        }
    }

    @Test
    void givenAWaitThatIsOver_whenTicked_thenItsLineIsClosedAndNoOther() {
        Silent late = new Silent();
        Silent early = new Silent();
        deadlines.begin(late, -1);
        deadlines.begin(early, TimeUnit.HOURS.toNanos(1));
        deadlines.tick();
        assertThat(late.open()).isFalse();
        assertThat(early.open()).isTrue();
    }

    @Test
    void givenNobodyWhoTicks_whenSomebodyWaitsOrBeginsTo_thenTheLineIsClosed() {
        Silent before = new Silent();
        deadlines.begin(before, TimeUnit.HOURS.toNanos(1));
        deadlines.end();
        assertThat(before.open()).isFalse();
        Silent after = new Silent();
        deadlines.begin(after, TimeUnit.HOURS.toNanos(1));
        assertThat(after.open()).isFalse();
        deadlines.end(before);
        deadlines.end(after);
        assertThat(deadlines.any()).isFalse();
    }
}
