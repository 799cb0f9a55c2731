package io.kvcache.server.miss;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.server.miss.MissCauses.Departure;
import io.kvcache.server.miss.MissLog.Kind;
import io.kvcache.server.miss.MissLog.Miss;
import io.kvcache.server.miss.MissLog.Reason;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

final class MissLogTest {

    private static final Namespace BLOCKS = Namespace.builder("llama")
            .tenant("blue")
            .part(Part.full(BlockShape.kv(1, 1, 128, 16, Dtype.BF16)))
            .build();
    private static final Namespace VALUES = Namespace.objects("objects", "green");

    private final AtomicLong nanos = new AtomicLong();
    private final MissCauses causes = new MissCauses(nanos::get);
    private final Set<BlockKey> onDisk = new HashSet<>();
    private final MissLog log = new MissLog(
            () -> Instant.ofEpochMilli(1_000_000 + TimeUnit.NANOSECONDS.toMillis(nanos.get())),
            causes,
            (_, key) -> onDisk.contains(key));
    private final BlockChain chain = BlockChain.of(BLOCKS, new int[64]);

    private void pass(long seconds) {
        nanos.addAndGet(TimeUnit.SECONDS.toNanos(seconds));
    }

    private Miss last() {
        return log.recent(null, _ -> true, 1).getFirst();
    }

    @Test
    void givenBlocksThatLeftInEachWay_whenAChainEndsThere_thenTheReasonTimeAndOrderAreKept() {
        log.tick("importance");
        causes.record(chain.key(2), Reason.EVICTED);
        pass(100);
        log.tick("lru");
        pass(20);
        log.onAccess(chain, 0, 2, 1);
        assertThat(last())
                .isEqualTo(new Miss(
                        Instant.ofEpochMilli(1_120_000),
                        "blue",
                        Kind.BLOCKS,
                        "llama",
                        hex(chain.key(2)),
                        4,
                        2,
                        Reason.EVICTED,
                        120L,
                        "importance"));
        causes.record(chain.key(1), Reason.QUOTA);
        log.onAccess(chain, 1, 0, 1);
        assertThat(last())
                .isEqualTo(new Miss(
                        Instant.ofEpochMilli(1_120_000),
                        "blue",
                        Kind.BLOCKS,
                        "llama",
                        hex(chain.key(1)),
                        3,
                        0,
                        Reason.QUOTA,
                        0L,
                        null));
        causes.record(chain.key(3), Reason.EVICTED);
        onDisk.add(chain.key(3));
        log.onAccess(chain, 0, 3, 1);
        assertThat(last().reason()).isEqualTo(Reason.LATE);
        log.onAccess(chain, 0, 4, 1);
        assertThat(log.blockMisses("blue"))
                .containsAllEntriesOf(Map.of(Reason.EVICTED, 1L, Reason.QUOTA, 1L, Reason.LATE, 1L))
                .containsEntry(Reason.NEVER_SEEN, 0L);
    }

    private static String hex(BlockKey key) {
        return "%016x%016x".formatted(key.hi(), key.lo());
    }

    @Test
    void givenManyMissesInOneTick_whenRecorded_thenAllAreCountedAndSomeAreKept() {
        for (int i = 0; i < 100; i++) {
            log.onAccess(chain, 0, 0, 1);
        }
        assertThat(log.blockMisses("blue")).containsEntry(Reason.NEVER_SEEN, 100L);
        assertThat(log.recent(null, _ -> true, 1000)).hasSize(16);
        assertThat(log.notKeptCount(null)).isEqualTo(84);
        for (int tick = 0; tick < 20; tick++) {
            log.tick("lru");
            for (int i = 0; i < 40; i++) {
                log.onAccess(chain, 0, 0, 1);
            }
        }
        assertThat(log.recent(null, _ -> true, 1000)).hasSize(MissLog.KEPT);
        assertThat(log.notKeptCount(null)).isEqualTo(100 + 800 - MissLog.KEPT);
    }

    @Test
    void givenValuesOfTenants_whenAskedForOne_thenOnlyItsMissesAreShown() {
        byte[] key = "<script>alert(1)</script>".getBytes(StandardCharsets.UTF_8);
        log.recordValue(VALUES, key, Reason.EXPIRED, () -> new Departure(Reason.EXPIRED, 7));
        log.onAccess(chain, 0, 0, 1);
        assertThat(log.recent("green", _ -> true, 10))
                .containsExactly(new Miss(
                        Instant.ofEpochMilli(1_000_000),
                        "green",
                        Kind.OBJECT,
                        "objects",
                        "<script>alert(1)</script>",
                        1,
                        0,
                        Reason.EXPIRED,
                        7L,
                        null));
        log.recordValue(VALUES, new byte[4096], Reason.NEVER_SEEN, () -> new Departure(Reason.NEVER_SEEN, 0));
        assertThat(last().key()).hasSize(257).endsWith("…");
    }

    @Test
    void givenATenantWithManyMisses_whenAnotherHasFew_thenThoseStay() {
        log.recordValue(VALUES, new byte[] {1}, Reason.BUSY, () -> new Departure(Reason.NEVER_SEEN, 0));
        for (int tick = 0; tick < 100; tick++) {
            log.tick("lru");
            for (int i = 0; i < 40; i++) {
                log.onAccess(chain, 0, 0, 1);
            }
        }
        assertThat(log.recent("green", _ -> true, 10)).hasSize(1);
        assertThat(log.notKeptCount("green")).isZero();
        assertThat(log.notKeptCount("blue")).isEqualTo(4000 - MissLog.KEPT);
        assertThat(log.recent(null, _ -> true, 1000)).hasSize(MissLog.KEPT + 1);
    }

    @Test
    void givenAKeyThatLeftLongAgo_whenAskedFor_thenTheSecondsAreRightAndAnotherKeyIsNotTakenForIt() {
        BlockKey key = chain.key(0);
        causes.record(key, Reason.DELETED);
        pass(1_000_000);
        assertThat(causes.departureOf(key)).isEqualTo(new Departure(Reason.DELETED, 1_000_000));
        BlockKey samePlace = new BlockKey(key.hi(), key.lo() ^ (1L << 40));
        assertThat(causes.departureOf(samePlace)).isEqualTo(new Departure(Reason.NEVER_SEEN, 0));
        assertThat(causes.causeOf(samePlace)).isEqualTo(Reason.NEVER_SEEN);
        assertThat(causes.causeOf(key)).isEqualTo(Reason.DELETED);
    }
}
