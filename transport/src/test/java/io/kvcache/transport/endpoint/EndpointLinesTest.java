package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.transport.link.CloseReason;
import io.kvcache.transport.link.Line;
import io.kvcache.transport.wire.Frame;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What becomes of connections, whatever carries them.
final class EndpointLinesTest {

    private final Serving serving = new Serving();
    private final Endpoint endpoint = serving.open(Serving.OPTIONS);
    private final EndpointLines lines = new EndpointLines(
            endpoint, Serving.OPTIONS.withStall(Duration.ofMillis(10)), name -> "kvcache-test-" + name);

    @AfterEach
    void nothingIsLeft() {
        lines.close();
        serving.requireNothingLeft();
    }

    /// A connection that waits until it is closed.
    private record Waiting(long stalledNanos, CompletableFuture<CloseReason> reason) implements Line {

        Waiting(long stalledNanos) {
            this(stalledNanos, new CompletableFuture<>());
        }

        @Override
        public boolean pump() {
            reason.join();
            return false;
        }

        @Override
        public boolean open() {
            return !reason.isDone();
        }

        @Override
        public boolean send(Frame frame) {
            return open();
        }

        @Override
        public void close(CloseReason why) {
            reason.complete(why);
        }
    }

    private Thread pumped(Line line) {
        lines.add(line);
        return lines.start("connection", () -> lines.pump(line));
    }

    @Test
    void givenALineThatStalls_whenWatched_thenItAloneIsClosed() throws Exception {
        lines.begin();
        Waiting stalled = new Waiting(TimeUnit.HOURS.toNanos(1));
        Waiting moving = new Waiting(0);
        pumped(stalled);
        pumped(moving);
        assertThat(stalled.reason.get(60, TimeUnit.SECONDS)).isEqualTo(CloseReason.STALLED);
        assertThat(moving.open()).isTrue();
    }

    @Test
    void givenALine_whenClosed_thenItsThreadHasEndedAndLaterOnesAreClosedAtOnce() {
        Waiting line = new Waiting(0);
        Thread thread = pumped(line);
        lines.close();
        assertThat(line.reason).isCompletedWithValue(CloseReason.SHUTDOWN);
        assertThat(thread.isAlive()).isFalse();
        Waiting late = new Waiting(0);
        lines.add(late);
        assertThat(late.reason).isCompletedWithValue(CloseReason.SHUTDOWN);
    }

    @Test
    void givenNoThreadForALine_whenServed_thenItIsClosedAndForgotten() {
        EndpointLines poor = new EndpointLines(endpoint, Serving.OPTIONS, name -> {
            throw new OutOfMemoryError("no native thread");
        });
        Waiting line = new Waiting(TimeUnit.HOURS.toNanos(1));
        assertThatThrownBy(() -> poor.serve(line)).isInstanceOf(OutOfMemoryError.class);
        assertThat(line.reason).isCompletedWithValue(CloseReason.INTERNAL);
        endpoint.drain();
        serving.pass(Duration.ofSeconds(1));
        assertThat(poor.drained()).as("nothing of it moves").isTrue();
    }
}
