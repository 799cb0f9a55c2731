package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.ManualTime;
import io.kvcache.server.net.Connections;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.RequestTimer;
import io.kvcache.server.net.Wire;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// How long requests are said to have taken, by a clock that stands still.
final class RequestTimesTest {

    private final List<String> times = new ArrayList<>();

    @Test
    void givenAnEmptyRequestAfterAnIdleHour_whenAnotherFollowsIt_thenItTookNoneOfThatHour() {
        RequestTimer timer = (_, verb, nanos) -> times.add(verb + " " + nanos);
        try (RespWire resp = new RespWire()) {
            ManualTime time = resp.test().time();
            Connections timed = new Connections(NetLimits.defaults(), time, timer, () -> 0);
            try (Wire wire = new Wire(resp.protocol(), timed)) {
                wire.ask("GET a\r\n");
                time.pass(Duration.ofHours(1));
                wire.ask("\r\nGET a\r\n");
                time.pass(Duration.ofHours(1));
                wire.ask("*0\r\nGET a\r\nGET a\r\n");
            }
        }
        assertThat(times).containsExactly("get 0", "get 0", "get 0", "get 0");
    }
}
