package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.SseTestClient.Event;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.NettyTransport.TransportKind;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
@Tag("slow")
final class HttpEventsTest {

    private static final BlockShape SHAPE = BlockShape.kv(2, 2, 32, 16, Dtype.BF16);

    /// More than the store keeps events.
    private static final int MANY = 70_000;

    private final TestServer server = start(Duration.ofMinutes(10));
    private final HttpTestClient httpTestClient = new HttpTestClient(server.port());
    private final EngineBlocks blocks = register("m");

    /// @param stall after which a client that does not read is cut off
    private static TestServer start(Duration stall) {
        return TestServer.start(TransportKind.AUTO, new NetLimits(100, Duration.ZERO, stall));
    }

    @AfterEach
    void stop() {
        httpTestClient.close();
        server.close();
    }

    private SseTestClient follow(String query) throws Exception {
        return new SseTestClient(httpTestClient, httpTestClient.request("/v1/events" + query));
    }

    private SseTestClient resume(String id) throws Exception {
        return new SseTestClient(
                httpTestClient, httpTestClient.request("/v1/events").header("Last-Event-ID", id));
    }

    private static Event next(SseTestClient events) throws IOException {
        return Objects.requireNonNull(events.next());
    }

    private EngineBlocks register(String model) {
        return EngineBlocks.register(server.server(), "default", model, SHAPE);
    }

    private void put(String key, String parent) {
        assertThat(blocks.put(key, parent)).isTrue();
    }

    /// Stores and drops objects, two events each.
    private void churn(int objects) {
        churn(server, objects);
    }

    private static void churn(TestServer server, int objects) {
        KvCache cache = server.server().cache();
        Namespace things = Namespace.objects("things", "default");
        cache.register(things);
        for (int i = 0; i < objects; i++) {
            byte[] key = Integer.toString(i).getBytes(US_ASCII);
            try (ObjectWriter writer = cache.putObject(things, key, 10, KvCache.NO_WAIT)) {
                writer.seal();
            }
            cache.dropObject(things, key);
        }
    }

    @Test
    void givenAFollower_whenBlocksComeAndGo_thenItIsToldAsItHappens() throws Exception {
        put("00", "");
        try (SseTestClient events = follow("")) {
            put("9bd96a485ad84efd", "00");
            Event stored = next(events);
            assertThat(stored.name()).isEqualTo("stored");
            assertThat(stored.id()).endsWith("-1");
            assertThat(stored.data().get("sequence").longValue()).isEqualTo(1);
            assertThat(stored.data().get("tier").stringValue()).isEqualTo("host");
            assertThat(stored.data().get("namespace").stringValue()).isEqualTo("m");
            assertThat(stored.data().get("depth").intValue()).isEqualTo(1);
            assertThat(stored.data().get("parent").stringValue()).hasSize(32);
            assertThat(stored.data().get("engineHash").stringValue())
                    .isEqualTo(Long.toUnsignedString(0x9bd96a485ad84efdL));

            httpTestClient.put("/v1/objects/k", "value");
            Event object = next(events);
            assertThat(object.data().get("object").booleanValue()).isTrue();
            httpTestClient.send(httpTestClient.request("/v1/objects/k").DELETE());
            Event removed = next(events);
            assertThat(removed.name()).isEqualTo("removed");
            assertThat(removed.data().get("cause").stringValue()).isEqualTo("dropped");
            assertThat(removed.data().get("key")).isEqualTo(object.data().get("key"));
        }
    }

    @Test
    void givenWhatIsStored_whenFollowedWithASnapshot_thenItComesFirstAndThenWhatHappens() throws Exception {
        put("00", "");
        put("01", "00");
        put("02", "01");
        assertThat(register("other").put("00", "")).isTrue();
        blocks.drop("02");
        try (SseTestClient events = follow("?from=snapshot&namespace=m")) {
            Event begins = next(events);
            assertThat(begins.name()).isEqualTo("snapshot");
            assertThat(begins.data().get("entries").intValue()).isEqualTo(2);
            Event first = next(events);
            Event second = next(events);
            assertThat(List.of(first.name(), second.name())).containsOnly("stored");
            assertThat(first.id()).isEmpty();
            assertThat(first.data().get("depth").intValue()).isZero();
            assertThat(second.data().get("parent")).isEqualTo(first.data().get("key"));
            assertThat(first.data().has("sequence")).isFalse();
            Event live = next(events);
            assertThat(live.name()).isEqualTo("live");
            assertThat(live.data().get("sequence").intValue()).isEqualTo(4);
            put("03", "01");
            Event stored = next(events);
            assertThat(stored.data().get("sequence").intValue()).isEqualTo(5);
            try (SseTestClient resumed = resume(live.id())) {
                assertThat(next(resumed).id()).isEqualTo(stored.id());
            }
        }
        assertThat(httpTestClient.get("/v1/events?from=yesterday").statusCode()).isEqualTo(400);
    }

    @Test
    void givenMoreThanASocketTakes_whenASnapshotIsSent_thenAllOfItComesAndItsPlaceIsFreeAgain() throws Exception {
        int many = 20_000;
        KvCache cache = server.server().cache();
        Namespace things = Namespace.objects("things", "default");
        cache.register(things);
        for (int i = 0; i < many; i++) {
            try (ObjectWriter writer =
                    cache.putObject(things, Integer.toString(i).getBytes(US_ASCII), 10, KvCache.NO_WAIT)) {
                writer.seal();
            }
        }
        for (int round = 0; round < 3; round++) {
            List<SseTestClient> readers = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                readers.add(follow("?from=snapshot"));
            }
            for (SseTestClient events : readers) {
                assertThat(next(events).data().get("entries").intValue()).isEqualTo(many);
                for (int i = 0; i < many; i++) {
                    assertThat(next(events).name()).isEqualTo("stored");
                }
                assertThat(next(events).name()).isEqualTo("live");
                events.close();
            }
        }
    }

    @Test
    void givenTheLastEventSeen_whenTheClientComesBack_thenItMissesNothingAndSeesNothingTwice() throws Exception {
        List<String> seen = new ArrayList<>();
        String last;
        try (SseTestClient events = follow("?from=oldest")) {
            churn(500);
            for (int i = 0; i < 300; i++) {
                seen.add(next(events).id());
            }
            last = seen.getLast();
        }
        churn(500);
        try (SseTestClient events = resume(last)) {
            while (seen.size() < 2000) {
                Event event = next(events);
                assertThat(event.name()).isNotEqualTo("gap");
                seen.add(event.id());
            }
        }
        assertThat(seen).doesNotHaveDuplicates();
        assertThat(seen.getFirst()).endsWith("-0");
        assertThat(seen.getLast()).endsWith("-1999");
    }

    @Test
    void givenAFollowerThatWasAwayTooLong_whenItComesBack_thenItIsToldOfTheGap() throws Exception {
        String first;
        try (SseTestClient events = follow("")) {
            churn(1);
            first = next(events).id();
        }
        churn(MANY / 2);
        try (SseTestClient events = resume(first)) {
            Event gap = next(events);
            assertThat(gap.name()).isEqualTo("gap");
            assertThat(gap.data().get("reason").stringValue()).isEqualTo("history");
            assertThat(gap.data().get("asked").stringValue()).isEqualTo(first);
            long oldest = gap.data().get("oldest").longValue();
            assertThat(oldest).isEqualTo(2 + MANY - (1 << 16));
            Event after = next(events);
            assertThat(after.data().get("sequence").longValue()).isEqualTo(oldest);
            assertThat(gap.id().replaceAll(".*-", "")).isEqualTo(Long.toString(oldest - 1));
        }
    }

    @Test
    void givenTheIdOfAnEarlierRun_whenResumed_thenTheGapIsOfARestart() throws Exception {
        churn(2);
        try (SseTestClient events = resume("earlier-1")) {
            Event gap = next(events);
            assertThat(gap.data().get("reason").stringValue()).isEqualTo("restart");
            assertThat(gap.data().get("oldest").longValue()).isZero();
            assertThat(next(events).data().get("sequence").longValue()).isZero();
        }
    }

    @Test
    void givenANamespace_whenOnlyThatIsWanted_thenOthersAreLeftOut() throws Exception {
        try (SseTestClient events = follow("?namespace=m")) {
            churn(20);
            put("00", "");
            assertThat(next(events).data().get("namespace").stringValue()).isEqualTo("m");
        }
    }

    @Test
    @Tag("nightly")
    void givenAClientThatDoesNotRead_whenEventsPileUp_thenItIsCutOffAndOthersGoOn() throws Exception {
        try (TestServer hasty = start(Duration.ofSeconds(1));
                HttpTestClient client = new HttpTestClient(hasty.port());
                Socket slow = new Socket(InetAddress.getLoopbackAddress(), hasty.port());
                SseTestClient quick = new SseTestClient(client, client.request("/v1/events"))) {
            slow.getOutputStream().write("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes(US_ASCII));
            assertThat(slow.getInputStream().read()).isEqualTo('H');
            long told = 0;
            while (closed(client, "slow_reader") == 0) {
                churn(hasty, 100); // which a socket takes whole, so that the quick one is not cut off while it waits
                for (int i = 0; i < 200; i++) {
                    Event event = next(quick);
                    assertThat(event.name()).isNotEqualTo("gap");
                    told++;
                }
            }
            assertThat(told).isPositive();
        }
    }

    private static int closed(HttpTestClient httpTestClient, String reason) throws Exception {
        return HttpTestClient.json(httpTestClient.get("/v1/stats"))
                .at("/connections/closed/" + reason)
                .intValue();
    }

    @Test
    void givenFollowers_whenTheServerGoesDown_thenTheirStreamsEnd() throws Exception {
        try (SseTestClient events = follow("")) {
            CompletableFuture<Boolean> drained =
                    CompletableFuture.supplyAsync(() -> server.server().drain(Duration.ofSeconds(60)));
            assertThat(events.next()).isNull();
            assertThat(drained.get()).isTrue();
        }
    }

    @Test
    void givenMoreFollowersThanMayBe_whenOneMoreComes_thenItIsToldSo() throws Exception {
        assertThat(httpTestClient
                        .send(httpTestClient.request("/v1/events").header("Last-Event-ID", "nonsense"))
                        .statusCode())
                .isEqualTo(400);
        assertThat(httpTestClient.post("/v1/events", "").statusCode()).isEqualTo(405);
        List<Socket> followers = new ArrayList<>();
        try (TestServer wide = TestServer.start(TransportKind.AUTO);
                HttpTestClient client = new HttpTestClient(wide.port())) {
            for (int i = 0; i < 256; i++) {
                Socket socket = new Socket(InetAddress.getLoopbackAddress(), wide.port());
                followers.add(socket);
                socket.getOutputStream().write("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes(US_ASCII));
                assertThat(socket.getInputStream().read()).isEqualTo('H');
            }
            assertThat(client.get("/v1/events").statusCode()).isEqualTo(503);
            followers.removeFirst().close();
            int answer = 503;
            while (answer == 503) { // until the server has seen that one is gone
                try (SseTestClient events = new SseTestClient(client, client.request("/v1/events"))) {
                    assertThat(events).isNotNull();
                    answer = 200;
                } catch (IOException full) {
                    assertThat(full).hasMessageStartingWith("503");
                }
            }
        } finally {
            for (Socket socket : followers) {
                socket.close();
            }
        }
    }

    @Test
    @Tag("nightly")
    void givenManyFollowersThatNeverRead_whenMuchHappens_thenWhatWaitsIsBoundedAndOthersAreAnswered() throws Exception {
        int followers = 40;
        List<Socket> silent = new ArrayList<>();
        try {
            for (int i = 0; i < followers; i++) {
                Socket socket = new Socket();
                socket.setReceiveBufferSize(4096);
                socket.connect(new java.net.InetSocketAddress(InetAddress.getLoopbackAddress(), server.port()));
                silent.add(socket);
                socket.getOutputStream()
                        .write("GET /v1/events?from=oldest HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes(US_ASCII));
                assertThat(new String(socket.getInputStream().readNBytes(15), US_ASCII))
                        .isEqualTo("HTTP/1.1 200 OK");
            }
            for (int i = 0; i < 3000; i++) {
                put(String.format(java.util.Locale.ROOT, "%032x", i + 1), "");
            }
            long before = 0;
            for (int look = 0; look < 5; look++) { // each answer is behind a turn of the loops
                assertThat(httpTestClient.get("/health/live").statusCode()).isEqualTo(200);
                before = Math.max(before, server.server().unreadBytes());
            }
            assertThat(before).isLessThan(followers * (192L << 10));
        } finally {
            for (Socket socket : silent) {
                socket.close();
            }
        }
    }
}
