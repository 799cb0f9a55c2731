package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameConnection;
import io.kvcache.transport.wire.OutboundFrame;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What becomes of connections, whatever carries them.
final class EndpointConnectionsTest {

    private final EndpointFixture endpointFixture = new EndpointFixture();
    private final Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS);
    private final EndpointConnections lines = new EndpointConnections(
            endpoint, EndpointFixture.OPTIONS.withStallTimeout(Duration.ofMillis(10)), name -> "kvcache-test-" + name);

    @AfterEach
    void nothingIsLeft() {
        lines.close();
        endpointFixture.requireNothingLeft();
    }

    /// A connection that waits until it is closed.
    private record BlockedConnection(long stalledNanos, CompletableFuture<DisconnectReason> reason)
            implements FrameConnection {

        BlockedConnection(long stalledNanos) {
            this(stalledNanos, new CompletableFuture<>());
        }

        @Override
        public void share() {}

        @Override
        public boolean pump() {
            reason.join();
            return false;
        }

        @Override
        public boolean isOpen() {
            return !reason.isDone();
        }

        @Override
        public boolean send(OutboundFrame frame) {
            return isOpen();
        }

        @Override
        public void close(DisconnectReason why) {
            reason.complete(why);
        }
    }

    private Thread pumped(FrameConnection frameConnection) {
        lines.add(frameConnection);
        return lines.start("connection", () -> lines.pump(frameConnection));
    }

    @Test
    void givenALineThatStalls_whenWatched_thenItAloneIsClosed() throws Exception {
        lines.startClock();
        BlockedConnection stalled = new BlockedConnection(TimeUnit.HOURS.toNanos(1));
        BlockedConnection moving = new BlockedConnection(0);
        pumped(stalled);
        pumped(moving);
        assertThat(stalled.reason.get(60, TimeUnit.SECONDS)).isEqualTo(DisconnectReason.STALLED);
        assertThat(moving.isOpen()).isTrue();
    }

    @Test
    void givenALine_whenClosed_thenItsThreadHasEndedAndLaterOnesAreClosedAtOnce() {
        BlockedConnection line = new BlockedConnection(0);
        Thread thread = pumped(line);
        lines.close();
        assertThat(line.reason).isCompletedWithValue(DisconnectReason.SHUTDOWN);
        assertThat(thread.isAlive()).isFalse();
        BlockedConnection late = new BlockedConnection(0);
        lines.add(late);
        assertThat(late.reason).isCompletedWithValue(DisconnectReason.SHUTDOWN);
    }

    @Test
    void givenNoThreadForALine_whenServed_thenItIsClosedAndForgotten() {
        EndpointConnections poor = new EndpointConnections(endpoint, EndpointFixture.OPTIONS, name -> {
            throw new OutOfMemoryError("no native thread");
        });
        BlockedConnection line = new BlockedConnection(TimeUnit.HOURS.toNanos(1));
        assertThatThrownBy(() -> poor.serve(line)).isInstanceOf(OutOfMemoryError.class);
        assertThat(line.reason).isCompletedWithValue(DisconnectReason.INTERNAL);
        endpoint.drain();
        endpointFixture.advance(Duration.ofSeconds(1));
        assertThat(poor.isDrained()).as("nothing of it moves").isTrue();
    }
}
