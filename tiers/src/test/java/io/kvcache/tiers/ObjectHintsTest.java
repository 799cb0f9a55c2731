package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.ObjectView;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.contract.ManualClock;
import io.kvcache.core.contract.Pause;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Effect of hints on objects in a store of 64.
final class ObjectHintsTest {

    private static final long MIB = 1 << 20;
    private static final long MINUTE = TimeUnit.MINUTES.toNanos(1);
    private static final ObjectHint SOON = new ObjectHint.Expect(Duration.ZERO);
    private static final ObjectHint FOR_LONG = new ObjectHint.Pin(Duration.ofNanos(Long.MAX_VALUE));
    private static final Namespace THINGS = Namespace.objects("things", "t");
    private static final Namespace OTHERS = Namespace.objects("others", "o");

    private final ManualClock clock = new ManualClock();

    @TempDir
    private Path folder = Path.of("");

    private TieredKvCache store(PolicyKind policy) {
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64 * MIB)
                .prefaultInBackground(false)
                .policy(policy)
                .clock(clock)
                .failOnLeak(true)
                .build();
        cache.register(THINGS);
        cache.register(OTHERS);
        return cache;
    }

    private static byte[] key(int number) {
        return ("key " + number).getBytes(StandardCharsets.US_ASCII);
    }

    private static List<byte[]> keys(int from, int to) {
        return IntStream.range(from, to).mapToObj(ObjectHintsTest::key).toList();
    }

    private static void put(TieredKvCache cache, int from, int to) {
        MemorySegment value = MemorySegment.ofArray(new byte[(int) MIB - 100]);
        for (int number = from; number < to; number++) {
            assertThat(cache.storeObject(THINGS, key(number), value, KvCache.NO_WAIT))
                    .isTrue();
        }
    }

    private static long here(TieredKvCache cache, int from, int to) {
        return keys(from, to).stream()
                .filter(key -> {
                    try (ObjectView view = cache.holdObject(THINGS, key)) {
                        return view != null;
                    }
                })
                .count();
    }

    @ParameterizedTest
    @EnumSource(names = {"LRU", "IMPORTANCE"})
    void givenExpectedObjects_whenAScanComes_thenTheySurviveItAndOthersDoNot(PolicyKind policy) {
        try (TieredKvCache cache = store(policy)) {
            put(cache, 0, 60);
            assertThat(cache.hintObjects(THINGS, keys(0, 20), SOON)).isEqualTo(20);
            put(cache, 100, 140);
            assertThat(here(cache, 0, 20)).isEqualTo(20);
            assertThat(here(cache, 20, 60)).isLessThan(5);
            cache.validate();
        }
    }

    @Test
    void givenObjectsThatTwoRequestsWaitFor_whenTheyArePutAfterwards_thenTheyStayForTheSecond() {
        try (TieredKvCache cache = store(PolicyKind.IMPORTANCE)) {
            put(cache, 100, 160);
            assertThat(cache.hintObjects(THINGS, keys(0, 10), SOON)).isEqualTo(10);
            assertThat(cache.hintObjects(THINGS, keys(0, 10), SOON)).isEqualTo(10);
            put(cache, 0, 20);
            put(cache, 200, 400);
            assertThat(here(cache, 0, 10)).isEqualTo(10);
            assertThat(here(cache, 10, 20)).isZero();
            for (byte[] key : keys(0, 10)) {
                try (ObjectView view = cache.getObject(THINGS, key)) {
                    assertThat(view).as("the second request").isNotNull();
                }
            }
            put(cache, 400, 600);
            assertThat(here(cache, 0, 10)).isLessThan(10);
            cache.validate();
        }
    }

    @Test
    void givenAPolicyThatDoesNotLookAhead_whenAbsentObjectsAreExpected_thenItIsNotTaken() {
        try (TieredKvCache cache = store(PolicyKind.LRU)) {
            put(cache, 100, 160);
            assertThat(cache.hintObjects(THINGS, keys(0, 10), SOON)).isZero();
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"LRU", "IMPORTANCE"})
    void givenASession_whenItGoesOnWithoutSomeObjects_thenTheseGoFirst(PolicyKind policy) {
        try (TieredKvCache cache = store(policy)) {
            put(cache, 0, 64);
            assertThat(cache.hintObjects(THINGS, keys(0, 30), turn(1, false))).isEqualTo(30);
            assertThat(cache.hintObjects(OTHERS, keys(0, 1), turn(2, false)))
                    .as("another namespace's session of that number")
                    .isEqualTo(1);
            assertThat(cache.hintStats().sessions()).isEqualTo(2);
            assertThat(cache.hintObjects(THINGS, keys(10, 30), turn(2, false))).isEqualTo(20);
            assertThat(cache.hintStats().blocksLeft()).isEqualTo(10);
            put(cache, 100, 110);
            assertThat(here(cache, 0, 10)).isZero();
            assertThat(here(cache, 10, 64)).isEqualTo(54);
            assertThat(cache.hintObjects(THINGS, keys(10, 12), turn(1, false)))
                    .as("a turn that comes late")
                    .isEqualTo(2);
            assertThat(cache.hintStats().blocksLeft()).isEqualTo(10);
            assertThat(cache.hintObjects(THINGS, keys(10, 30), turn(3, true))).isEqualTo(20);
            assertThat(cache.hintStats().sessions()).isEqualTo(1);
            cache.validate();
        }
    }

    private static ObjectHint turn(int turn, boolean last) {
        return new ObjectHint.Label(new RequestLabel(RequestKind.CHAT, 7, turn, last));
    }

    @ParameterizedTest
    @EnumSource(names = {"LRU", "IMPORTANCE"})
    void givenForgottenObjects_whenRoomIsNeeded_thenTheyGoFirst(PolicyKind policy) {
        try (TieredKvCache cache = store(policy)) {
            put(cache, 0, 64);
            assertThat(cache.hintObjects(THINGS, keys(40, 60), new ObjectHint.Forget()))
                    .isEqualTo(20);
            put(cache, 100, 120);
            assertThat(here(cache, 40, 60)).isZero();
            assertThat(here(cache, 0, 40)).isEqualTo(40);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"LRU", "IMPORTANCE"})
    void givenPinnedObjects_whenAScanComes_thenAQuarterOfMemoryStaysUntilTheTimeIsOver(PolicyKind policy) {
        try (TieredKvCache cache = store(policy)) {
            put(cache, 0, 60);
            assertThat(cache.hintObjects(THINGS, keys(0, 60), FOR_LONG)).isEqualTo(16);
            put(cache, 100, 400);
            assertThat(here(cache, 0, 60)).isEqualTo(16);
            assertThat(cache.hintStats().pins()).isEqualTo(16);
            assertThat(cache.hintStats().pinnedBytes()).isEqualTo(16 * MIB);
            assertThat(cache.hintObjects(THINGS, keys(0, 4), new ObjectHint.Pin(Duration.ZERO)))
                    .isEqualTo(4);
            assertThat(cache.hintStats().pins()).isEqualTo(12);

            clock.now().addAndGet(60 * MINUTE);
            assertThat(cache.hintStats().pins()).as("an hour is the most").isZero();
            put(cache, 500, 900);
            assertThat(here(cache, 0, 60)).isZero();
        }
    }

    @Test
    void givenTenantsWithShares_whenOnePinsAllItCan_thenAQuarterOfItsShareAndTheOtherHasItsOwn() {
        try (TieredKvCache cache = store(PolicyKind.LRU)) {
            cache.setWeight(THINGS, 1);
            cache.setWeight(OTHERS, 1);
            MemorySegment value = MemorySegment.ofArray(new byte[(int) MIB - 100]);
            for (byte[] key : keys(0, 12)) {
                assertThat(cache.storeObject(THINGS, key, value, KvCache.NO_WAIT))
                        .isTrue();
                assertThat(cache.storeObject(OTHERS, key, value, KvCache.NO_WAIT))
                        .isTrue();
            }
            assertThat(cache.hintObjects(THINGS, keys(0, 12), FOR_LONG))
                    .as("of 21")
                    .isEqualTo(5);
            assertThat(cache.hintObjects(THINGS, keys(0, 12), FOR_LONG))
                    .as("again")
                    .isEqualTo(5);
            assertThat(cache.hintObjects(OTHERS, keys(0, 12), FOR_LONG)).isEqualTo(5);
            assertThat(cache.hintStats().pinnedBytes()).isEqualTo(10 * MIB);
        }
    }

    @Test
    void givenPinnedObjects_whenDroppedOrReplaced_thenTheirPinsEnd() {
        try (TieredKvCache cache = store(PolicyKind.LRU)) {
            put(cache, 0, 3);
            assertThat(cache.hintObjects(THINGS, keys(0, 3), FOR_LONG)).isEqualTo(3);
            assertThat(cache.dropObject(THINGS, key(0))).isTrue();
            put(cache, 1, 2);
            assertThat(cache.hintStats().pins()).isEqualTo(1);
            assertThat(cache.stats().host().heldBytes()).isLessThan(3 * MIB);
            assertThat(cache.drop(THINGS)).isEqualTo(2);
            assertThat(cache.hintStats().pins()).isZero();
            assertThat(cache.stats().host().heldBytes()).isZero();
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"LRU", "IMPORTANCE"})
    void givenObjectsWithATime_whenItIsOver_thenTheyGoFirstAndOthersStay(PolicyKind policy) {
        try (TieredKvCache cache = store(policy)) {
            put(cache, 0, 64);
            assertThat(cache.hintObjects(THINGS, keys(50, 60), new ObjectHint.Expire(Duration.ofNanos(MINUTE))))
                    .isEqualTo(10);
            assertThat(cache.hintStats().blocksWaiting()).isEqualTo(10);
            clock.now().addAndGet(MINUTE);
            put(cache, 100, 110);
            assertThat(here(cache, 50, 60)).isZero();
            assertThat(here(cache, 0, 50)).isEqualTo(50);
            assertThat(cache.hintStats().blocksExpired()).isEqualTo(10);
        }
    }

    @Test
    void givenMoreTimesThanAreKept_whenSaid_thenTheyAreNotTaken() {
        try (TieredKvCache cache = store(PolicyKind.LRU)) {
            assertThat(cache.hintObjects(THINGS, keys(0, 1 << 16), new ObjectHint.Expire(Duration.ofNanos(MINUTE))))
                    .isEqualTo(1 << 16);
            assertThat(cache.hintObjects(THINGS, keys(-1, 0), new ObjectHint.Expire(Duration.ofNanos(MINUTE))))
                    .isZero();
            clock.now().addAndGet(MINUTE);
            assertThat(cache.hintStats().blocksWaiting()).isZero();
        }
    }

    @Test
    void givenAPolicyThatLearns_whenObjectsAreLabelledAndWeighed_thenThoseThatMatterStay() {
        try (TieredKvCache cache = store(PolicyKind.IMPORTANCE)) {
            put(cache, 0, 64);
            for (int number = 0; number < 64; number += 2) {
                cache.hintObjects(THINGS, keys(63 - number, 64 - number), new ObjectHint.Weigh(0.1f));
            }
            ObjectHint label = new ObjectHint.Label(new RequestLabel(RequestKind.AGENT, 0, 2, false));
            assertThat(cache.hintObjects(THINGS, keys(0, 8), label)).isEqualTo(8);
            assertThat(cache.hintStats().blocksWeighed()).isEqualTo(32);
            assertThat(cache.hintStats().blocksLabelled()).isEqualTo(8);
            put(cache, 100, 124);
            long important = IntStream.range(0, 64)
                    .filter(number -> number % 2 == 0 && here(cache, number, number + 1) == 1)
                    .count();
            assertThat(important).isGreaterThan(24);
        }
        try (TieredKvCache cache = store(PolicyKind.LRU)) {
            put(cache, 0, 4);
            assertThat(cache.hintObjects(THINGS, keys(0, 4), new ObjectHint.Weigh(1f)))
                    .isZero();
        }
    }

    @Test
    void givenKeysOfAnotherNamespaceOrNone_whenHintedAt_thenNothingIsTaken() {
        try (TieredKvCache cache = store(PolicyKind.LRU)) {
            put(cache, 0, 4);
            for (ObjectHint hint : List.of(SOON, FOR_LONG, new ObjectHint.Forget())) {
                assertThat(cache.hintObjects(OTHERS, keys(0, 4), hint)).isZero();
                assertThat(cache.hintObjects(THINGS, keys(4, 8), hint)).isZero();
                assertThat(cache.hintObjects(THINGS, List.of(), hint)).isZero();
            }
            assertThat(cache.hintStats().pins()).isZero();
        }
    }

    @Test
    void givenObjectsOnDiskAlone_whenForgottenOrTheirTimeIsOver_thenThatIsSaidOfThemToo() {
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64 * MIB)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(AdmissionKind.ALWAYS)
                .disk(folder.resolve("disk"), 600 * MIB)
                .build()) {
            cache.register(THINGS);
            cache.register(OTHERS);
            for (int number = 0; number < 160; number += 20) {
                put(cache, number, number + 20);
                assertThat(cache.flush(Duration.ofNanos(10 * MINUTE))).isTrue();
            }
            assertThat(here(cache, 0, 20)).isZero();
            assertThat(cache.hintObjects(THINGS, keys(0, 10), new ObjectHint.Forget()))
                    .isEqualTo(10);
            assertThat(cache.hintObjects(THINGS, keys(10, 20), new ObjectHint.Expire(Duration.ZERO)))
                    .isEqualTo(10);
            assertThat(cache.hintStats().blocksExpired()).isEqualTo(10);
            assertThat(cache.hintObjects(OTHERS, keys(0, 10), new ObjectHint.Forget()))
                    .isZero();
            assertThat(cache.containsObject(THINGS, key(0))).isTrue();
            cache.validate();
        }
    }

    @Test
    void givenObjectsOnDisk_whenExpected_thenAQuarterOfMemoryIsBroughtIn() {
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64 * MIB)
                .prefaultInBackground(false)
                .admission(AdmissionKind.ALWAYS)
                .disk(folder.resolve("disk"), 600 * MIB)
                .build()) {
            cache.register(THINGS);
            for (int number = 0; number < 160; number += 20) {
                put(cache, number, number + 20);
                assertThat(cache.flush(Duration.ofNanos(10 * MINUTE))).isTrue();
            }
            assertThat(here(cache, 0, 40)).isZero();
            assertThat(cache.hintObjects(THINGS, keys(0, 40), SOON)).isEqualTo(16);
            while (here(cache, 0, 40) < 16) {
                Pause.briefly();
            }
        }
    }
}
