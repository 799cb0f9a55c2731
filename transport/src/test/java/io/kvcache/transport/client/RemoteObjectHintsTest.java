package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Hints about objects over TCP, in a store of 32 of them.
@Timeout(300)
final class RemoteObjectHintsTest {

    private static final int FIT = 32;
    private static final Namespace THINGS = Namespace.objects("things", "t");

    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes((long) FIT << 20)
            .policy(PolicyKind.IMPORTANCE)
            .failOnLeak(true)
            .prefaultInBackground(false)
            .build();
    private final TcpEndpoint endpoint = LoopbackServers.serve(store);
    private final RemoteKvCache remote = connect();

    private RemoteKvCache connect() {
        return LoopbackServers.connect(endpoint, THINGS);
    }

    @AfterEach
    void close() throws IOException {
        remote.close();
        endpoint.close();
        store.validate();
        store.close();
    }

    private static byte[] key(int number) {
        return ("key " + number).getBytes(StandardCharsets.US_ASCII);
    }

    private static List<byte[]> keys(int from, int to) {
        return IntStream.range(from, to).mapToObj(RemoteObjectHintsTest::key).toList();
    }

    private void put(int from, int to) {
        store.register(THINGS);
        MemorySegment value = MemorySegment.ofArray(new byte[(1 << 20) - 100]);
        for (int number = from; number < to; number++) {
            assertThat(store.storeObject(THINGS, key(number), value, KvCache.NO_WAIT))
                    .isTrue();
        }
    }

    private long here(int from, int to) {
        return keys(from, to).stream()
                .filter(key -> store.containsObject(THINGS, key))
                .count();
    }

    private int hint(ObjectHint hint, int from, int to) {
        return remote.hintObjects(THINGS, keys(from, to), hint);
    }

    @Test
    void givenForgottenAndOutlivedObjects_whenRoomIsNeeded_thenTheyGoFirst() {
        put(0, FIT);
        assertThat(hint(new ObjectHint.Forget(), 4, 8)).isEqualTo(4);
        assertThat(hint(new ObjectHint.Expire(Duration.ZERO), 8, 12)).isEqualTo(4);
        put(100, 108);
        assertThat(here(4, 12)).isZero();
        assertThat(here(0, 4) + here(12, FIT)).isEqualTo(FIT - 8);
    }

    @Test
    void givenLabelsWeightsAndSessions_whenToldOver_thenTheStoreHasThem() {
        put(0, FIT);
        assertThat(hint(new ObjectHint.Weigh(0.25f), 0, 5)).isEqualTo(5);
        assertThat(store.hintStats().blocksWeighed()).isEqualTo(5);
        assertThat(hint(turn(1, false), 0, 10)).isEqualTo(10);
        assertThat(store.hintStats().blocksLabelled()).isEqualTo(10);
        assertThat(store.hintStats().sessions()).isEqualTo(1);
        assertThat(hint(turn(2, true), 0, 6)).isEqualTo(6);
        assertThat(store.hintStats().sessions()).isZero();
        assertThat(store.hintStats().blocksLeft()).isEqualTo(4);
    }

    private static ObjectHint turn(int turn, boolean last) {
        return new ObjectHint.Label(new RequestLabel(RequestKind.CHAT, 7, turn, last));
    }

    @Test
    void givenExpectedObjects_whenAScanComes_thenTheySurviveIt() {
        put(0, FIT);
        assertThat(hint(new ObjectHint.Expect(Duration.ZERO), 0, 10)).isEqualTo(10);
        put(100, 140);
        assertThat(here(0, 10)).isEqualTo(10);
    }

    @Test
    void givenPinsOfTwoClients_whenOneGoes_thenThatOfBothStays() {
        put(0, FIT);
        assertThat(hint(new ObjectHint.Pin(Duration.ofNanos(Long.MAX_VALUE)), 0, 4))
                .isEqualTo(4);
        try (RemoteKvCache other = connect()) {
            ObjectHint pin = new ObjectHint.Pin(Duration.ofNanos(Long.MAX_VALUE));
            assertThat(other.hintObjects(THINGS, keys(2, 6), pin)).isEqualTo(4);
            assertThat(other.hintObjects(THINGS, keys(0, 2), new ObjectHint.Pin(Duration.ZERO)))
                    .as("another client's")
                    .isZero();
            assertThat(store.hintStats().pins()).isEqualTo(6);
        }
        TestBlocks.await(
                "the end of the other's session", () -> store.hintStats().pins() == 4);
        put(100, 200);
        assertThat(here(0, 4)).isEqualTo(4);
        assertThat(here(4, FIT)).isZero();
        assertThat(hint(new ObjectHint.Pin(Duration.ZERO), 0, 4)).isEqualTo(4);
        assertThat(store.hintStats().pins()).isZero();
    }

    @Test
    void givenMorePinsThanASessionKeeps_whenAskedFor_thenTheOldestHaveEnded() throws IOException {
        MemorySegment value = MemorySegment.ofArray(new byte[100]);
        ObjectHint pin = new ObjectHint.Pin(Duration.ofNanos(Long.MAX_VALUE));
        try (TieredKvCache large = TieredKvCache.builder()
                        .hostBytes(192 << 20)
                        .prefaultInBackground(false)
                        .build();
                TcpEndpoint itsEndpoint = LoopbackServers.serve(large);
                RemoteKvCache client = LoopbackServers.connect(itsEndpoint, THINGS)) {
            for (int number = 0; number < 8200; number++) {
                assertThat(large.storeObject(THINGS, key(number), value, KvCache.NO_WAIT))
                        .isTrue();
            }
            assertThat(client.hintObjects(THINGS, keys(0, 8200), pin)).isEqualTo(8200);
            assertThat(large.hintStats().pins()).isEqualTo(8192);
            ObjectHint end = new ObjectHint.Pin(Duration.ZERO);
            assertThat(client.hintObjects(THINGS, keys(0, 8), end)).isZero();
            assertThat(client.hintObjects(THINGS, keys(0, 8200), end)).isEqualTo(8192);
            assertThat(large.hintStats().pins()).isZero();
        }
    }

    @Test
    void givenMoreKeysThanAMessageTakes_whenHinted_thenTheyGoInSeveral() {
        put(0, FIT);
        assertThat(hint(new ObjectHint.Forget(), 0, 20_000)).isEqualTo(FIT);
        assertThat(hint(new ObjectHint.Expire(Duration.ofNanos(1)), 0, 20_000)).isEqualTo(20_000);
        List<byte[]> long4096 = IntStream.range(0, 1500)
                .mapToObj(i -> "%04096d".formatted(i).getBytes(StandardCharsets.US_ASCII))
                .toList();
        assertThat(remote.hintObjects(THINGS, long4096, new ObjectHint.Pin(Duration.ofNanos(1))))
                .isZero();
    }

    @Test
    void givenAKeyThatCannotBe_whenHinted_thenItIsRefusedHere() {
        assertThatThrownBy(() -> remote.hintObjects(THINGS, List.of(new byte[0]), new ObjectHint.Forget()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("allowed: 1 to 4096");
        assertThat(remote.hintObjects(THINGS, List.of(), new ObjectHint.Forget()))
                .isZero();
    }
}
