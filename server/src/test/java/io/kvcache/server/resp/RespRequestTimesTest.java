package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.ManualClock;
import io.kvcache.server.log.LogCapture;
import io.kvcache.server.net.ConnectionRegistry;
import io.kvcache.server.net.ConnectionRegistry.RequestTimer;
import io.kvcache.server.net.EmbeddedConnection;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.SlowRequestLog;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// How long requests are said to have taken, by a clock that stands still.
final class RespRequestTimesTest {

    private final List<String> times = new ArrayList<>();

    @Test
    void givenAnEmptyRequestAfterAnIdleHour_whenAnotherFollowsIt_thenItTookNoneOfThatHour() {
        RequestTimer timer = (_, verb, nanos) -> times.add(verb + " " + nanos);
        try (EmbeddedRespServer resp = new EmbeddedRespServer()) {
            ManualClock time = resp.test().time();
            ConnectionRegistry timed = EmbeddedConnection.registry(NetLimits.defaults(), time, timer, () -> 0);
            try (EmbeddedConnection embeddedConnection = new EmbeddedConnection(resp.protocol(), timed)) {
                embeddedConnection.ask("GET a\r\n");
                time.advance(Duration.ofHours(1));
                embeddedConnection.ask("\r\nGET a\r\n");
                time.advance(Duration.ofHours(1));
                embeddedConnection.ask("*0\r\nGET a\r\nGET a\r\n");
            }
        }
        assertThat(times).containsExactly("get 0", "get 0", "get 0", "get 0");
    }

    @Test
    void givenAThreshold_whenARequestTakesLonger_thenItIsLoggedWithItsSizeAndTenant() {
        try (EmbeddedRespServer resp = new EmbeddedRespServer();
                LogCapture logCapture = new LogCapture(SlowRequestLog.class.getName())) {
            ManualClock time = resp.test().time();
            SlowRequestLog slow = new SlowRequestLog(Duration.ofSeconds(1), time);
            ConnectionRegistry timed =
                    new ConnectionRegistry(NetLimits.defaults(), time, RequestTimer.NONE, slow, () -> 0);
            try (EmbeddedConnection embeddedConnection = new EmbeddedConnection(resp.protocol(), timed)) {
                embeddedConnection.ask("GET a\r\n");
                embeddedConnection.ask("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\nha");
                time.advance(Duration.ofMillis(2500));
                embeddedConnection.ask("lf\r\n");
                embeddedConnection.ask("GET a\r\n");
            }
            assertThat(logCapture.messages())
                    .singleElement()
                    .asString()
                    .startsWith("Slow request: resp set took 2500.0 ms, 0.0 ms of them waiting for a disk,")
                    .contains("; 30 bytes came with it, tenant default, from ", "; log.slow is 1000 ms");
        }
    }

    @Test
    void givenManySlowRequests_whenLogged_thenTheLogGetsSome() {
        try (EmbeddedRespServer resp = new EmbeddedRespServer();
                LogCapture logCapture = new LogCapture(SlowRequestLog.class.getName())) {
            ManualClock time = resp.test().time();
            SlowRequestLog slow = new SlowRequestLog(Duration.ofMillis(1), time);
            ConnectionRegistry timed =
                    new ConnectionRegistry(NetLimits.defaults(), time, RequestTimer.NONE, slow, () -> 0);
            try (EmbeddedConnection embeddedConnection = new EmbeddedConnection(resp.protocol(), timed)) {
                for (int i = 0; i < 50; i++) {
                    embeddedConnection.ask("*2\r\n$3\r\nGET\r\n");
                    time.advance(Duration.ofMillis(2));
                    embeddedConnection.ask("$1\r\na\r\n");
                }
                time.advance(Duration.ofSeconds(10));
                embeddedConnection.ask("*2\r\n$3\r\nGET\r\n");
                time.advance(Duration.ofMillis(2));
                embeddedConnection.ask("$1\r\na\r\n");
            }
            assertThat(logCapture.messages()).hasSize(21);
            assertThat(logCapture.messages().getLast()).endsWith(" (30 more before were not logged)");
        }
    }
}
